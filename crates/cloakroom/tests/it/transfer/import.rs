//! What becomes of the lines of an import.

use cloakroom::access::Transform;
use cloakroom::tokens::{Scope, verify_histories};
use cloakroom::transfer::import::{Counts, Error};
use cloakroom_testkit::{TestVault, everything};
use serde_json::{Value, json};

use super::{
    APPLICATION, card_number, cards, count, import_lines, import_with, options, rejected,
    without_times,
};

#[tokio::test]
async fn a_line_becomes_the_token_that_a_request_would_create() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let new = json!({"id": "order 17", "type": "card", "containers": ["/pci/archive/"],
        "data": {"number": card_number(1), "expiration_month": 12, "expiration_year": 2040},
        "mask": {"number": "{{ data.number | reveal_last: 4 }}"}, "metadata": {"who": "ada"},
        "search_indexes": ["{{ data.number }}"], "expires_at": "2099-01-01T00:00:00+01:00"});

    let (counts, _) = import_lines(&vault, &tenant, "cards", new.to_string())
        .await
        .unwrap();
    assert_eq!((counts.created, counts.lines()), (1, 1));
    let imported = client.get("/tokens/order%2017").await.body;
    let mut created = new.clone();
    created["id"] = "order 18".into();
    let created = client.post("/tokens", created).await;
    assert_eq!(created.status, 201, "{}", created.body);
    let created = client.get("/tokens/order%2018").await.body;

    assert_eq!(imported["created_by"], APPLICATION.to_string());
    assert_eq!(imported["fingerprint"], created["fingerprint"]);
    let mut expected = without_times(created);
    expected["id"] = "order 17".into();
    assert_eq!(without_times(imported), expected);
    let query = json!({"query": format!("data:{}", card_number(1))});
    let found = client.post("/v2/tokens/search", query).await.body;
    assert_eq!(found["data"].as_array().unwrap().len(), 2, "{found}");
}

#[tokio::test]
async fn rejected_lines_are_named_by_line_id_and_rule_without_data() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let number = card_number(1);
    let lines = [
        json!({"id": "first", "type": "token", "data": "a"}).to_string(),
        "{\"type\": \"card\", \"data\": 4242".to_owned(),
        json!({"id": "x-1", "type": "card", "data": {"number": "4242424242424241"}}).to_string(),
        json!({"id": number, "type": "token", "data": "b"}).to_string(),
        String::new(),
        json!({"id": "first", "type": "token", "data": "c"}).to_string(),
        json!({"type": "token", "data": "d", "metadata": {number.clone(): "e"}}).to_string(),
        json!({"type": "token", "encrypted": "e30.."}).to_string(),
        json!({"id": "{{ data }}", "type": "token", "data": "f"}).to_string(),
        json!({"type": "token", "data": "g", "expires_at": "2001-01-01T00:00:00Z"}).to_string(),
    ];

    let imported = import_lines(&vault, &tenant, "cards", lines.join("\n")).await;
    let (counts, report) = imported.unwrap();

    assert_eq!((counts.created, counts.rejected), (1, 8), "{report:?}");
    let text = format!("{report:?}");
    assert!(
        !text.contains("4242424242") && !text.contains(&number),
        "{text}"
    );
    assert_eq!(report.rejected[1].line, 3);
    assert_eq!(report.rejected[1].id.as_deref(), Some("x-1"));
    assert_eq!(report.rejected[2].id, None);
    let repeated = rejected(6, Some("first"), "id: an earlier line has the same id");
    assert_eq!(report.rejected[3], repeated);
    let database = vault.database.connect().await;
    let stored = "select outcomes from import_batch";
    let stored: String = database.query_one(stored, &[]).await.unwrap().get(0);
    assert!(
        !stored.contains("4242424242") && !stored.contains(&number),
        "{stored}"
    );
    assert_eq!(count(&vault, "token").await, 1);
}

#[tokio::test]
async fn a_taken_id_is_rejected_and_an_equal_card_is_a_duplicate() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let card = |index| json!({"number": card_number(index), "expiration_month": 12, "expiration_year": 2040});
    let existing =
        json!({"id": "existing", "type": "card", "data": card(1), "deduplicate_token": true});
    assert_eq!(client.post("/tokens", existing).await.status, 201);
    let line = |id: &str, index| json!({"id": id, "type": "card", "data": card(index)}).to_string();
    let lines = [
        line("new-1", 1),
        line("new-2", 2),
        line("new-3", 2),
        line("existing", 3),
    ];
    let mut deduplicating = options("cards");
    deduplicating.deduplicates = true;

    let imported = import_with(&vault, &tenant, deduplicating, lines.join("\n")).await;
    let (counts, report) = imported.unwrap();

    let expected = Counts {
        created: 1,
        duplicates: 2,
        rejected: 1,
        ..Counts::default()
    };
    assert_eq!(counts, expected, "{report:?}");
    let mapped: Vec<_> = report
        .mapped
        .iter()
        .map(|it| {
            (
                it.line,
                it.id.as_deref(),
                it.token.as_str(),
                it.is_duplicate,
            )
        })
        .collect();
    let expected = [
        (1, Some("new-1"), "existing", true),
        (3, Some("new-3"), "new-2", true),
    ];
    assert_eq!(mapped, expected);
    let taken = rejected(
        4,
        Some("existing"),
        "id: is in use or belonged to a deleted token",
    );
    assert_eq!(report.rejected, [taken]);
}

#[tokio::test]
async fn new_ids_are_mapped_the_same_in_every_run() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let lines = r#"{"id": "old", "type": "token", "data": "a"}"#;
    let assigning = || {
        let mut assigning = options("cards");
        assigning.assigns_ids = true;
        assigning
    };

    let (_, first) = import_with(&vault, &tenant, assigning(), lines)
        .await
        .unwrap();
    let (counts, second) = import_with(&vault, &tenant, assigning(), lines)
        .await
        .unwrap();

    assert_eq!(first.mapped, second.mapped);
    assert_eq!(counts.earlier, 1);
    assert_eq!(first.mapped[0].id.as_deref(), Some("old"));
    let token = &first.mapped[0].token;
    let found = client.get(&format!("/tokens/{token}")).await;
    assert_eq!(
        (found.status.as_u16(), &found.body["data"]),
        (200, &json!("a"))
    );
    assert_eq!(client.get("/tokens/old").await.status, 404);
}

#[tokio::test]
async fn security_codes_are_dropped_and_counted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let data = json!({"number": card_number(1), "expiration_month": 12, "expiration_year": 2040,
        "cvc": "123"});
    let line = json!({"id": "card-1", "type": "card", "data": data}).to_string();

    let (counts, _) = import_lines(&vault, &tenant, "cards", line).await.unwrap();

    assert_eq!((counts.created, counts.dropped_codes), (1, 1));
    assert_eq!(count(&vault, "security_code").await, 0);
    let token = client.get("/tokens/card-1").await.body;
    assert_eq!(token["data"].get("cvc"), None, "{token}");
}

#[tokio::test]
async fn a_dry_run_finds_the_same_and_writes_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let lines = cards(3) + r#"{"type": "card", "data": {}}"#;
    let mut dry = options("cards");
    dry.is_dry_run = true;

    let (dry, dry_report) = import_with(&vault, &tenant, dry, lines.clone())
        .await
        .unwrap();
    let written = [
        count(&vault, "token").await,
        count(&vault, "import_batch").await,
    ];
    let (counts, report) = import_lines(&vault, &tenant, "cards", lines).await.unwrap();

    assert_eq!(written, [0, 0]);
    assert_eq!((dry, dry_report.rejected), (counts, report.rejected));
    assert_eq!(count(&vault, "token").await, 3);
}

#[tokio::test]
async fn every_token_is_in_the_audit_log_with_its_operator_and_no_event_is_sent() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    vault.vault.audit.set_operator(super::operator("ada"));

    import_lines(&vault, &tenant, "cards", cards(2))
        .await
        .unwrap();

    let database = vault.database.connect().await;
    let sql = "select entity_kind, entity_id, actor_kind, origin from log
        where operation = 1 and entity_kind in (2, 21) order by entity_kind";
    let rows = database.query(sql, &[]).await.unwrap();
    assert_eq!(rows.len(), 3);
    let import: String = rows[2].get(1);
    assert_eq!(
        import,
        "cards lines 1-2: 2 created, 0 duplicates, 0 rejected"
    );
    for row in &rows {
        let (actor_kind, origin): (i16, String) = (row.get(2), row.get(3));
        assert_eq!((actor_kind, origin.as_str()), (3, "ada@vault1"));
    }
    let found = verify_histories(&vault.vault, Scope::All, |_| {})
        .await
        .unwrap();
    assert_eq!(found.findings.len(), 0);
    assert_eq!(count(&vault, "webhook_delivery").await, 0);
}

#[tokio::test]
async fn a_name_must_be_printable_and_no_card_number() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    for name in ["", "a\nb", "4242424242424242"] {
        let imported = import_lines(&vault, &tenant, name, "").await;
        assert!(matches!(imported, Err(Error::Name)), "{name:?}");
    }
    let (counts, _) = import_lines(&vault, &tenant, "empty", "").await.unwrap();
    assert_eq!(counts, Counts::default());
}

/// An export of the hosted service has the tokens as the API returns them.
#[tokio::test]
async fn a_token_as_the_api_returns_it_can_be_imported() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let new = json!({"type": "card", "metadata": {"who": "ada"},
        "data": {"number": card_number(1), "expiration_month": 12, "expiration_year": 2040}});
    let created = client.post("/tokens", new).await.body;
    let id = created["id"].as_str().unwrap();
    let returned: Value = client.get(&format!("/tokens/{id}")).await.body;
    let other = vault.tenant().await;
    let other_client = vault.client(&other, everything(Transform::Reveal)).await;

    let imported = import_lines(&vault, &other, "hosted", returned.to_string()).await;

    assert_eq!(imported.unwrap().0.created, 1);
    let found = other_client.get(&format!("/tokens/{id}")).await.body;
    assert_eq!(without_times(found), without_times(returned));
}
