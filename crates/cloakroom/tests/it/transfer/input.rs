//! Formats of imports: CSV, and encrypted input.

use cloakroom::access::Transform;
use cloakroom::transfer::import::{ColumnMap, Format};
use cloakroom_testkit::{TestVault, encrypt, everything};
use serde_json::json;

use super::{card_number, count, import_with, key_pair, options, read_key, rejected};

fn csv(columns: &[(&str, &str)]) -> Format {
    let columns = columns.iter();
    Format::Csv(ColumnMap {
        columns: columns
            .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
            .collect(),
        processor: None,
        kind: "card".to_owned(),
    })
}

#[tokio::test]
async fn a_processors_card_file_is_imported() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let file = format!(
        "customer,pan,exp,name,internal\n\
         c-1,{},12/40,\"Lovelace, Ada\",x\n\
         c-2,4242424242424241,12/40,Grace,x\n\
         c-3,{},0139,\"multi\nline\",\n",
        card_number(1),
        card_number(2)
    );
    let mut processor = options("processor");
    processor.format = csv(&[
        ("customer", "id"),
        ("pan", "data.number"),
        ("exp", "data.expiration"),
        ("name", "metadata.holder"),
        ("internal", "-"),
    ]);

    let (counts, report) = import_with(&vault, &tenant, processor, file).await.unwrap();

    assert_eq!((counts.created, counts.rejected), (2, 1), "{report:?}");
    let rejected = &report.rejected[0];
    assert_eq!((rejected.line, rejected.id.as_deref()), (3, Some("c-2")));
    let card = client.get("/tokens/c-1").await.body;
    let data = json!({"number": card_number(1), "expiration_month": 12, "expiration_year": 2040});
    assert_eq!(card["data"], data);
    assert_eq!(card["metadata"], json!({"holder": "Lovelace, Ada"}));
    let card = client.get("/tokens/c-3").await.body;
    assert_eq!(card["data"]["expiration_year"], 2039);
}

#[tokio::test]
async fn malformed_lines_are_rejected_without_quoting_them() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let number = card_number(1);
    let mut unmapped = options("file");
    unmapped.format = csv(&[]);
    let error = import_with(&vault, &tenant, unmapped, "number,pan\n1,2\n").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("map the columns pan"), "{error}");
    for columns in [&[][..], &[("customer", "id"), ("pan", "data.number")]] {
        let mut headless = options("headless");
        headless.format = csv(columns);
        let file = format!("Ada Lovelace,{number},12/31\nGrace Hopper,{number},12/31\n");
        let error = import_with(&vault, &tenant, headless, file).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("the first line has no column names"),
            "{error}"
        );
        assert!(
            !error.contains(&number) && !error.contains("Ada"),
            "{error}"
        );
    }
    let mut uneven = options("uneven");
    uneven.format = csv(&[]);
    let file = format!("number,cvc\n{number}\n{number},123,{number}\n");
    let (counts, report) = import_with(&vault, &tenant, uneven, file).await.unwrap();
    assert_eq!(counts.rejected, 2);
    let columns = "the line has another number of columns than the header";
    assert_eq!(report.rejected[0], rejected(2, None, columns));
    let mut not_text = number.clone().into_bytes();
    not_text.push(0xff);
    let (_, report) = import_with(&vault, &tenant, options("file"), not_text)
        .await
        .unwrap();
    assert_eq!(
        report.rejected,
        [rejected(1, None, "the line is not UTF-8")]
    );
    assert!(!format!("{report:?}").contains(&number));
}

/// With either end of lines, after empty lines and after quoted ones, in both runs.
#[tokio::test]
async fn rejected_and_mapped_lines_have_the_numbers_of_an_editor() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let (one, two, invalid) = (card_number(1), card_number(2), "4242424242424241");
    let lines = [
        "id,number,expiration,metadata.note",
        &format!("a-1,{one},12/40,x"),
        "",
        &format!("a-2,{invalid},12/40,x"),
        &format!("a-3,{two},12/40,\"two"),
        "lines\"",
        &format!("a-4,{invalid},12/40,x"),
    ];
    // Progress and derived ids have the numbers of the parser, so that imports can be continued with a later version.
    for (end, first_line) in [("\n", 2_i64), ("\r\n", 1)] {
        let import = async || {
            let mut numbered = options(&format!("{first_line}"));
            numbered.format = csv(&[]);
            numbered.assigns_ids = true;
            import_with(&vault, &tenant, numbered, lines.join(end)).await
        };
        for _ in 0..2 {
            let (_, report) = import().await.unwrap();
            let rejected: Vec<u64> = report.rejected.iter().map(|it| it.line).collect();
            let mapped: Vec<u64> = report.mapped.iter().map(|it| it.line).collect();
            assert_eq!((rejected, mapped), (vec![4, 7], vec![2, 5]), "{end:?}");
        }
        let database = vault.database.connect().await;
        let sql = "select count(*) from import_batch where first_line = $1";
        let found: i64 = database
            .query_one(sql, &[&first_line])
            .await
            .unwrap()
            .get(0);
        assert_eq!(found, 1, "{end:?}");
    }
    let mut returns = options("returns");
    returns.format = csv(&[]);
    let error = import_with(&vault, &tenant, returns, lines.join("\r")).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("line 1: it ends with a carriage return alone"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unclosed_quote_fails_with_its_line() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let record = |id: u64| format!("a-{id},{},12/40\n", card_number(id));
    let unclosed = format!("a-2,\"{},12/40\n", card_number(2));
    let start = "id,number,expiration\n".to_owned() + &record(1) + &unclosed;
    let short: String = start.clone() + &record(3);
    let long = start + &(4..300_000).map(record).collect::<String>();
    for (file, expected) in [
        (short, "line 3: the quote that opens here is not closed"),
        (
            long,
            "line 3: the quote that opens here is not closed within 4194304 bytes",
        ),
    ] {
        let mut unclosed = options("unclosed");
        unclosed.format = csv(&[]);
        let error = import_with(&vault, &tenant, unclosed, file).await;
        assert_eq!(error.unwrap_err().to_string(), expected);
        assert_eq!(count(&vault, "token").await, 0);
    }
}

#[tokio::test]
async fn encrypted_input_is_decrypted_with_the_private_key() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let folder = tempfile::tempdir().unwrap();
    let (private, public) = key_pair(folder.path());
    let line = |id: &str| json!({"id": id, "type": "token", "data": "secret"}).to_string();
    // As any sender with a JWE library encrypts it.
    let pem = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, public.0);
    let key = json!({"key_id": "receiver", "public_key_pem": format!("-\n{pem}\n-")});
    let whole_lines = encrypt(&key, &format!("{}\n{}\n", line("a-1"), line("a-2")));
    let input = format!("{whole_lines}\n\n{}", encrypt(&key, &line("a-3")));
    let encrypted = || {
        let mut encrypted = options("encrypted");
        encrypted.key = Some(read_key(&private));
        encrypted
    };

    let (counts, report) = import_with(&vault, &tenant, encrypted(), input.clone())
        .await
        .unwrap();

    assert_eq!(counts.created, 3, "{report:?}");
    for id in ["a-1", "a-2", "a-3"] {
        let token = client.get(&format!("/tokens/{id}")).await.body;
        assert_eq!(token["data"], "secret");
    }
    let altered = input.replacen("..", "..A", 1);
    let mut other = encrypted();
    other.name = "altered".to_owned();
    let error = import_with(&vault, &tenant, other, altered).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("JWE 1 cannot be decrypted"), "{error}");
}
