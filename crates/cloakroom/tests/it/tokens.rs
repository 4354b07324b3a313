//! Tokens through the front door.

use std::time::Duration;

use cloakroom::access::{Permission, Transform};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{TestVault, grants, rule};

fn card() -> Value {
    json!({
        "type": "card",
        "data": {
            "number": "4242424242424242",
            "expiration_month": 12,
            "expiration_year": 2030,
            "cvc": "123",
        },
    })
}

/// Covers 2.5, 3.21.
#[tokio::test]
async fn a_new_card_answers_masked_under_plain_permissions() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;

    let answer = client.post("/tokens", card()).await;

    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(
        answer.header("content-type"),
        "application/json; charset=utf-8"
    );
    let location = format!("{}/tokens/{}", vault.base_url, answer.id());
    assert_eq!(answer.header("location"), location);
    assert_eq!(answer.body["tenant_id"], tenant.id.uuid.to_string());
    let told = answer.told(&["id", "tenant_id", "fingerprint", "created_by", "created_at"]);
    insta::assert_snapshot!(told, @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "type": "card",
      "data": {
        "number": "XXXXXXXXXXXX4242",
        "expiration_month": 12,
        "expiration_year": 2030
      },
      "mask": {
        "number": "{{ data.number | reveal_last: 4 }}",
        "expiration_month": "{{ data.expiration_month }}",
        "expiration_year": "{{ data.expiration_year }}"
      },
      "card": {
        "bin": "42424242",
        "last4": "4242",
        "expiration_month": 12,
        "expiration_year": 2030,
        "brand": "visa",
        "funding": "credit",
        "authentication": "sca_required",
        "issuer": {
          "country": "BM"
        },
        "issuer_country": {
          "alpha2": "BM",
          "numeric": "060",
          "name": "Bermuda"
        }
      },
      "search_indexes": [],
      "fingerprint_expression": "{{ data.number }}",
      "created_by": "[created_by]",
      "created_at": "[created_at]",
      "fingerprint": "[fingerprint]",
      "containers": [
        "/pci/high/"
      ],
      "_extras": {
        "deduplicated": false
      }
    }
    "#);
}

/// Covers 3.4.
#[tokio::test]
async fn any_json_comes_back_as_it_was_sent() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        "\"text\"",
        "\"\"",
        "0",
        "19.90",
        "1e400",
        "123456789012345678901234567890",
        "true",
        "false",
        "[]",
        "{}",
        "[1,[2,{\"a\":null}]]",
        "{\"z\":1,\"a\":{\"deep\":[\"\\u00e9\",\"\\n\"]}}",
    ];
    for data in cases {
        let body = format!("{{\"type\":\"token\",\"data\":{data}}}");
        let created = client.post_text("/tokens", &body, "application/json").await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{data}: {}",
            created.body
        );

        let found = client.get(&format!("/tokens/{}", created.id())).await;

        let text = String::from_utf8(found.bytes).unwrap();
        assert!(
            text.contains(&format!("\"data\":{data},")),
            "{data} in {text}"
        );
    }
}

/// Covers 2.2, 4.1, 4.3.
#[tokio::test]
async fn data_is_redacted_masked_or_revealed_by_the_rule_that_decides() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, grants(&[TokenCreate])).await;
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/users/government/", Transform::Redact, &[TokenRead]),
        rule(2, "/users/employees/", Transform::Reveal, &[TokenRead]),
        rule(3, "/users/", Transform::Mask, &[TokenRead]),
    ];
    let reader = vault.client(&tenant, granted).await;

    let cases = [
        ("/users/government/", StatusCode::OK, None),
        (
            "/users/employees/hq/",
            StatusCode::OK,
            Some(json!("secret value")),
        ),
        ("/Users/", StatusCode::OK, Some(json!("XXXXXXXXalue"))),
        ("/bounty-hunters/", StatusCode::FORBIDDEN, None),
    ];
    for (container, status, data) in cases {
        let new = json!({
            "type": "token",
            "data": "secret value",
            "mask": "{{ data | reveal_last: 4 }}",
            "containers": [container],
        });
        let created = writer.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        assert_eq!(
            created.body["containers"],
            json!([container.to_lowercase()])
        );

        let found = reader.get(&format!("/tokens/{}", created.id())).await;

        assert_eq!(found.status, status, "{container}");
        assert_eq!(found.body.get("data"), data.as_ref(), "{container}");
    }
}

/// Covers 2.2.
#[tokio::test]
async fn a_token_without_a_mask_is_redacted_where_masking_is_due() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;

    let created = client
        .post("/tokens", json!({"type": "token", "data": "secret"}))
        .await;

    assert_eq!(created.status, StatusCode::CREATED);
    assert_eq!(created.body.get("data"), None);
    assert_eq!(created.body.get("mask"), None);
}

/// Covers 1.1, 3.14.
#[tokio::test]
async fn creating_needs_the_permission_where_the_token_goes() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/pci/",
        Transform::Mask,
        &[Permission::TokenCreate],
    )];
    let client = vault.client(&tenant, granted).await;

    let inside = client.post("/tokens", card()).await;
    let outside = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;

    assert_eq!(inside.status, StatusCode::CREATED);
    assert_eq!(outside.status, StatusCode::FORBIDDEN);
    let kept: i64 = vault
        .database
        .connect()
        .await
        .query_one("select count(*) from token", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(kept, 1);
}

/// Covers 6.1, 6.2.
#[tokio::test]
async fn a_deleted_token_is_gone() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let created = client.post("/tokens", card()).await;
    let path = format!("/tokens/{}", created.id());

    let deleted = client.delete(&path).await;
    let found = client.get(&path).await;
    let again = client.delete(&path).await;

    assert_eq!(
        (deleted.status, deleted.bytes.len()),
        (StatusCode::NO_CONTENT, 0)
    );
    assert_eq!(found.status, StatusCode::NOT_FOUND);
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

/// Covers 1.6, 6.3.
#[tokio::test]
async fn deleting_needs_the_permission_where_the_token_lies() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/general/",
        Transform::Mask,
        &[Permission::TokenDelete],
    )];
    let client = vault.client(&tenant, granted).await;
    let created = writer.post("/tokens", card()).await;

    let answer = client.delete(&format!("/tokens/{}", created.id())).await;

    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_token_is_unknown_to_other_tenants() {
    let vault = TestVault::start().await;
    let owner = vault.revealing_client().await;
    let other = vault.revealing_client().await;
    let path = format!("/tokens/{}", owner.post("/tokens", card()).await.id());

    let foreign = other.get(&path).await;
    let missing = other
        .get("/tokens/c06d0789-0a38-40be-b7cc-c28a718f76f1")
        .await;
    let malformed = other.get("/tokens/no-such-token").await;
    let deleted = other.delete(&path).await;

    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    assert_eq!(foreign.bytes, missing.bytes);
    assert_eq!(foreign.bytes, malformed.bytes);
    assert_eq!(deleted.bytes, missing.bytes);
    assert_eq!(owner.get(&path).await.status, StatusCode::OK);
}

/// Covers 9.5, 9.11.
#[tokio::test]
async fn an_id_can_be_chosen_once() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = cloakroom::ids::new_uuid().to_string();
    let new = json!({"id": id, "type": "token", "data": "first"});

    let first = client.post("/tokens", new.clone()).await;
    let second = client.post("/tokens", new).await;

    assert_eq!((first.status, first.id()), (StatusCode::CREATED, id));
    assert_eq!(second.status, StatusCode::CONFLICT);
}

/// Covers 8.7, 8.8, 8.9, 9.14.
#[tokio::test]
async fn an_expiring_token_tells_when_and_then_is_gone() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let create = async |expires_at: &str| {
        let new = json!({"type": "token", "data": 1, "expires_at": expires_at});
        client.post("/tokens", new).await
    };

    let american = create("8/26/2030 7:23:57 PM -07:00").await;
    let past = create("2020-01-01T00:00:00Z").await;
    let ancient = create("-005000-01-01").await;
    let nonsense = create("soon").await;
    let soon = std::time::SystemTime::now() + Duration::from_millis(3000);
    let soon = jiff::Timestamp::try_from(soon).unwrap();
    let brief = create(&soon.to_string()).await;
    let path = format!("/tokens/{}", brief.id());
    let before = client.get(&path).await;

    assert_eq!(american.body["expires_at"], "2030-08-26T19:23:57-07:00");
    let found = client.get(&format!("/tokens/{}", american.id())).await;
    assert_eq!(found.body["expires_at"], "2030-08-26T19:23:57-07:00");
    assert_eq!(past.refused(), ["expires_at"]);
    assert_eq!(ancient.refused(), ["expires_at"]);
    assert_eq!(nonsense.refused(), ["expires_at"]);
    assert_eq!(before.status, StatusCode::OK);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while client.get(&path).await.status != StatusCode::NOT_FOUND {
        assert!(
            std::time::Instant::now() < deadline,
            "the token did not expire"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
    // Its id is free again, although its row may not have been swept yet.
    let again = json!({"id": brief.id(), "type": "token", "data": "again"});
    assert_eq!(
        client.post("/tokens", again).await.status,
        StatusCode::CREATED
    );
    assert_eq!(client.get(&path).await.body["data"], "again");
}

/// Covers 3.8.
#[tokio::test]
async fn metadata_comes_back_in_order() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let new = json!({"type": "token", "data": 1, "metadata": {"b": "2", "a": "1", "c": null}});

    let created = client.post("/tokens", new).await;
    let found = client.get(&format!("/tokens/{}", created.id())).await;

    assert_eq!(found.body["metadata"].to_string(), r#"{"b":"2","a":"1"}"#);
}

/// Covers 3.13.
#[tokio::test]
async fn every_broken_rule_is_named_at_once_and_no_value_is_repeated() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let new = json!({
        "id": "4242/nope",
        "type": "card",
        "data": {"number": "4242424242424241", "expiration_month": 13, "cvc": "9999999"},
        "containers": ["pci"],
        "metadata": {"pan": "4242424242424242"},
        "mask": "{{ data | no_such_filter }}",
        "expires_at": "never",
    });

    let answer = client.post("/tokens", new).await;

    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        answer.refused(),
        [
            "containers[0]",
            "data.cvc",
            "data.expiration_month",
            "data.number",
            "expires_at",
            "id",
            "mask",
            "metadata.pan",
        ]
    );
    let text = String::from_utf8(answer.bytes).unwrap();
    for value in [
        "4242424242424241",
        "4242424242424242",
        "9999999",
        "4242/nope",
        "never",
    ] {
        assert!(!text.contains(value), "{value} in {text}");
    }
}

/// Covers 3.5.
#[tokio::test]
async fn an_intent_beside_data_is_refused_and_unknown_attributes_are_ignored() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let id = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let new = json!({"type": "token", "data": 1, "token_intent_id": id});
    let refused = client.post("/tokens", new).await;
    assert_eq!(refused.refused(), ["data"]);
    let harmless = json!({
        "type": "token",
        "data": 1,
        "search_indexes": [],
        "deduplicate_token": false,
        "fingerprint_expression": null,
        "owner_merchant_id": null,
    });
    assert_eq!(
        client.post("/tokens", harmless).await.status,
        StatusCode::CREATED
    );
}

/// Covers 2.17, 3.12.
#[tokio::test]
async fn the_older_privacy_attribute_names_the_container_when_nothing_else_does() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        (
            json!({"classification": "pii", "impact_level": "low"}),
            json!(null),
            Ok("/pii/low/"),
        ),
        (
            json!({"classification": "bank"}),
            json!(null),
            Ok("/bank/high/"),
        ),
        (
            json!({"impact_level": "moderate"}),
            json!(null),
            Ok("/general/moderate/"),
        ),
        (
            json!({"restriction_policy": "redact"}),
            json!(null),
            Ok("/general/high/"),
        ),
        (
            json!({"classification": "pii"}),
            json!(["/mine/"]),
            Ok("/mine/"),
        ),
        (
            json!({"classification": "PII"}),
            json!(null),
            Err("privacy.classification"),
        ),
        (
            json!({"impact_level": "none"}),
            json!(null),
            Err("privacy.impact_level"),
        ),
    ];
    for (privacy, containers, expected) in cases {
        let new = json!({"type": "token", "data": 1, "privacy": privacy, "containers": containers});
        let created = client.post("/tokens", new).await;
        match expected {
            Ok(container) => {
                assert_eq!(created.body["containers"], json!([container]), "{privacy}")
            }
            Err(path) => assert_eq!(created.refused(), [path], "{privacy}"),
        }
        assert_eq!(created.body.get("privacy"), None);
    }
}

#[tokio::test]
async fn a_mask_that_yields_nothing_shows_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;
    let new = json!({"type": "token", "data": {"a": 1}, "mask": "{{ data.nothing }}"});

    let created = client.post("/tokens", new).await;

    assert_eq!(created.status, StatusCode::CREATED);
    assert_eq!(created.body.get("data"), None);
}

/// Covers 3.2, 3.3, 3.7.
#[tokio::test]
async fn type_and_data_are_both_needed() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        (json!({}), vec!["data", "type"]),
        (json!({"type": "token"}), vec!["data"]),
        (json!({"type": "token", "data": null}), vec!["data"]),
        (json!({"data": 1}), vec!["type"]),
        (json!({"type": "Card", "data": 1}), vec!["type"]),
        (
            json!({"type": "token", "data": 1, "containers": []}),
            vec!["containers"],
        ),
        (
            json!({"type": "token", "data": 1, "containers": ["/a/", "/b/"]}),
            vec!["containers"],
        ),
    ];
    for (new, refused) in cases {
        assert_eq!(
            client.post("/tokens", new.clone()).await.refused(),
            refused,
            "{new}"
        );
    }
}

/// Covers 3.7.
#[tokio::test]
async fn every_type_is_kept_where_it_belongs_and_revealed_as_it_came() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        ("token", json!({"any": [1.5]}), "/general/high/"),
        ("card", json!({"number": "4242424242424242"}), "/pci/high/"),
        ("card_number", json!("4242424242424242"), "/pci/high/"),
        (
            "network_token",
            json!({"number": "424242424242"}),
            "/pci/high/",
        ),
        (
            "bank",
            json!({"routing_number": "021000021", "account_number": "00001"}),
            "/bank/high/",
        ),
        ("us_bank_account_number", json!("00001"), "/bank/high/"),
        ("us_bank_routing_number", json!("021000021"), "/bank/low/"),
        ("social_security_number", json!("078-05-1120"), "/pii/high/"),
        ("employer_id_number", json!("12-3456789"), "/pii/high/"),
    ];
    for (kind, data, container) in cases {
        let created = client
            .post("/tokens", json!({"type": kind, "data": data}))
            .await;
        let found = client.get(&format!("/tokens/{}", created.id())).await;

        assert_eq!(created.status, StatusCode::CREATED, "{kind}");
        assert_eq!(found.body["type"], kind);
        assert_eq!(found.body["data"], data, "{kind}");
        assert_eq!(found.body["containers"], json!([container]), "{kind}");
    }
}

/// Covers 2.6.
#[tokio::test]
async fn a_bank_account_shows_its_details_to_everyone_who_may_read_it() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;

    let data = json!({"routing_number": "021000021", "account_number": "00001"});
    let answer = client
        .post("/tokens", json!({"type": "bank", "data": data}))
        .await;

    let details = json!({"routing_number": "021000021", "account_number_last4": "0001"});
    let masked = json!({"routing_number": "021000021", "account_number": "X0001"});
    assert_eq!(answer.body["bank"], details);
    assert_eq!(answer.body["data"], masked);
}

#[tokio::test]
async fn many_tokens_first_using_a_container_at_once_share_it() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let create = |n: usize| {
        let client = client.clone();
        async move {
            let container = format!("/fresh/{}/", n % 32);
            let new = json!({"type": "token", "data": n, "containers": [container]});
            client.post("/tokens", new).await.status
        }
    };

    let mut creating = tokio::task::JoinSet::new();
    (0..64).for_each(|n| {
        creating.spawn(create(n));
    });
    let statuses = creating.join_all().await;

    assert!(
        statuses.iter().all(|status| *status == StatusCode::CREATED),
        "{statuses:?}"
    );
    let row = vault.database.connect().await;
    let row = row
        .query_one(
            "select count(*), count(distinct container_id) from container",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (32, 32));
}

#[tokio::test]
async fn a_mask_has_a_size() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let create = async |leaves: usize| {
        let mask = vec!["{{ data | reveal_last: 4 }}"; leaves];
        client
            .post(
                "/tokens",
                json!({"type": "token", "data": "x", "mask": mask}),
            )
            .await
    };

    assert_eq!(create(500).await.status, StatusCode::CREATED);
    assert_eq!(create(600).await.refused(), ["mask"]);
}
