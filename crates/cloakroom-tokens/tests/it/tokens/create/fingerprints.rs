//! Fingerprints of new tokens.

use cloakroom::access::Transform;
use cloakroom_testkit::{Client, TestVault, everything};
use serde_json::{Value, json};

use super::{count, create, text};

/// Covers 3.16.
#[tokio::test]
async fn an_empty_fingerprint_is_rejected_unless_the_expression_is_the_default() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let given = ["{{ data }}", "{{ data.x }}", "{{ metadata.x }}", ""];
    for expression in given {
        let new = json!({"type": "token", "data": "", "fingerprint_expression": expression});
        let response = client.post("/tokens", new).await;
        assert_eq!(
            response.refused(),
            ["fingerprint_expression"],
            "{expression}"
        );
    }
    for deduplicate in [false, true, true] {
        let new = json!({"type": "token", "data": "", "deduplicate_token": deduplicate});
        let created = create(&client, new).await;
        assert_eq!(created.body.get("fingerprint"), None);
        assert_eq!(created.body.get("fingerprint_expression"), None);
        assert_eq!(created.body["_extras"], json!({"deduplicated": false}));
    }
    assert_eq!(count(&vault, "token").await, 3);
}

/// Covers 3.10, 3.22, 3.25, 2.8, 2.12.
#[tokio::test]
async fn tokens_are_fingerprinted_when_requested_or_configured() {
    let vault = TestVault::start().await;
    let without = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let deduplicating = [
        ("fingerprint_tokens", "false"),
        ("deduplicate_tokens", "true"),
    ];
    let deduplicating = vault.tenant_with(&deduplicating).await;
    let default = vault.tenant().await;
    let expression = "{{ data.number }}|{{ data.expiration_month }}";
    let own = "{{ data.number }}";

    let cases = [
        (&default, json!({}), Some(own)),
        (&default, json!({"fingerprint_expression": null}), Some(own)),
        (
            &default,
            json!({"fingerprint_expression": expression}),
            Some(expression),
        ),
        (&without, json!({}), None),
        (&without, json!({"deduplicate_token": false}), None),
        (
            &without,
            json!({"fingerprint_expression": expression}),
            Some(expression),
        ),
        (&without, json!({"deduplicate_token": true}), Some(own)),
        (&deduplicating, json!({}), Some(own)),
        (&deduplicating, json!({"deduplicate_token": false}), None),
    ];
    for (tenant, mut new, expected) in cases {
        let client = vault.client(tenant, everything(Transform::Reveal)).await;
        new["type"] = json!("card");
        new["data"] = json!({"number": "4242424242424242", "expiration_month": 1});
        let created = create(&client, new.clone()).await;
        let read = client.get(&format!("/tokens/{}", created.id())).await;
        assert_eq!(
            created.body.get("fingerprint_expression"),
            expected.map(Value::from).as_ref(),
            "{new}"
        );
        assert_eq!(
            created.body.get("fingerprint").is_some(),
            expected.is_some(),
            "{new}"
        );
        assert_eq!(
            read.body.get("fingerprint"),
            created.body.get("fingerprint"),
            "{new}"
        );
    }
}

/// Covers 3.10, 3.23, 3.24.
#[tokio::test]
async fn equal_data_has_equal_fingerprints_within_a_type_and_tenant() {
    let vault = TestVault::start().await;
    let (first, second) = (vault.tenant().await, vault.tenant().await);
    let first = vault.client(&first, everything(Transform::Reveal)).await;
    let second = vault.client(&second, everything(Transform::Reveal)).await;
    let fingerprint = async |client: &Client, kind: &str, data: Value, more: Value| {
        let mut new = json!({"type": kind, "data": data});
        for (name, value) in more.as_object().unwrap() {
            new[name] = value.clone();
        }
        text(&create(client, new).await, "fingerprint").to_owned()
    };
    let none = || json!({});
    let number = json!("4242424242424242");

    let own = fingerprint(&first, "card_number", number.clone(), none()).await;
    assert_eq!(
        fingerprint(&first, "card_number", number.clone(), none()).await,
        own
    );
    let elsewhere = json!({"containers": ["/else/where/"], "metadata": {"a": "b"}, "mask": "x"});
    assert_eq!(
        fingerprint(&first, "card_number", number.clone(), elsewhere).await,
        own
    );
    let spelled_out = json!({"fingerprint_expression": "{{ data }}"});
    assert_eq!(
        fingerprint(&first, "card_number", number.clone(), spelled_out).await,
        own
    );

    let mut others = vec![
        own,
        fingerprint(&first, "card_number", json!("4111111111111111"), none()).await,
        fingerprint(&first, "token", number.clone(), none()).await,
        fingerprint(&first, "card", json!({"number": number}), none()).await,
        fingerprint(&second, "card_number", number.clone(), none()).await,
        fingerprint(&second, "token", number, none()).await,
    ];
    let by_metadata = json!({"fingerprint_expression": "{{ metadata.a }}", "metadata": {"a": "1"}});
    let by_other_metadata =
        json!({"fingerprint_expression": "{{ metadata.a }}", "metadata": {"a": "2"}});
    others.push(fingerprint(&first, "token", json!("same"), by_metadata).await);
    others.push(fingerprint(&first, "token", json!("same"), by_other_metadata).await);
    let distinct: std::collections::BTreeSet<&String> = others.iter().collect();
    assert_eq!(distinct.len(), others.len());

    // Differences that the type ignores do not change the fingerprint.
    let dashes = fingerprint(
        &first,
        "social_security_number",
        json!("078-05-1120"),
        none(),
    )
    .await;
    assert_eq!(
        fingerprint(&first, "social_security_number", json!("078051120"), none()).await,
        dashes
    );
    let month = json!({"number": "4242424242424242", "expiration_month": "02"});
    let card = json!({"number": "4242424242424242"});
    assert_eq!(
        fingerprint(&first, "card", month, none()).await,
        fingerprint(&first, "card", card, none()).await
    );
    // Two Unicode normalization forms of the same letter.
    assert_eq!(
        fingerprint(&first, "token", json!("k\u{e4}se"), none()).await,
        fingerprint(&first, "token", json!("ka\u{308}se"), none()).await
    );
    let stringified = json!({"fingerprint_expression": "{{ data | stringify }}"});
    let object = json!({"a": [1.50, {"b": "\u{e4}\n"}], "c": null});
    assert_eq!(
        fingerprint(&first, "token", object.clone(), none()).await,
        fingerprint(&first, "token", object, stringified).await
    );
}

/// Covers 3.23.
#[tokio::test]
async fn a_fingerprint_is_32_bytes_in_base58() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let mut lengths = std::collections::BTreeMap::new();

    for n in 0..150 {
        let created = create(&client, json!({"type": "token", "data": n})).await;
        let fingerprint = text(&created, "fingerprint");
        assert_eq!(
            bs58::decode(fingerprint).into_vec().unwrap().len(),
            32,
            "{fingerprint}"
        );
        *lengths.entry(fingerprint.len()).or_insert(0) += 1;
    }

    println!("fingerprint lengths: {lengths:?}");
    assert!(
        lengths.keys().all(|length| (43..=44).contains(length)),
        "{lengths:?}"
    );
}

/// I07: no stored digest depends on a security code.
///
/// Covers 3.28.
#[tokio::test]
async fn security_codes_do_not_change_stored_digests() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let digests = async |id: &str| {
        let id = uuid::Uuid::parse_str(id).unwrap();
        let sql = "select encode(fingerprint, 'hex'), terms, alias, mask, metadata,
                          (select array_agg(term.term order by term.term) from term
                           where term.token_id = token.token_id)
                   from token where token_id = $1";
        let row = database.query_one(sql, &[&id]).await.unwrap();
        let listed: Vec<Vec<u8>> = row.get(5);
        assert!(listed.len() >= 4, "{}", listed.len());
        let clear: [Option<String>; 3] = [row.get(2), row.get(3), row.get(4)];
        (
            row.get::<_, String>(0),
            row.get::<_, Vec<Vec<u8>>>(1),
            listed,
            clear,
        )
    };

    for kind in ["card", "network_token"] {
        // The second expression covers all of the data.
        for expression in [json!(null), json!("{{ data | stringify }}")] {
            let mut seen = Vec::new();
            for code in [json!("123"), json!("124"), json!(9876), json!(null)] {
                let new = json!({
                    "type": kind,
                    "data": {"number": "4242424242424242", "cvc": code, "expiration_month": 4, "name": "A"},
                    "fingerprint_expression": expression,
                    "search_indexes": ["{{ data.number | last4 }}", "{{ data | stringify }}"],
                    "metadata": {"order": "1"},
                    "mask": {"all": "{{ data | stringify }}", "code": "{{ data.cvc }}"},
                });
                let created = create(&client, new).await;
                let id = created.id();
                seen.push((digests(&id).await, text(&created, "fingerprint").to_owned()));
            }
            assert!(
                seen.iter().all(|each| *each == seen[0]),
                "{kind} {expression}: {seen:?}"
            );
        }
    }
}
