//! Reading tokens: transforms, details and visibility.

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{TestVault, grants, rule};
use http::StatusCode;
use serde_json::json;

use super::card;

/// Covers 2.5, 3.21.
#[tokio::test]
async fn new_cards_are_masked_without_a_rule() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;

    let response = client.post("/tokens", card()).await;

    assert_eq!(response.status, StatusCode::CREATED);
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    let location = format!("{}/tokens/{}", vault.base_url, response.id());
    assert_eq!(response.header("location"), location);
    assert_eq!(response.body["tenant_id"], tenant.id.uuid.to_string());
    let snapshot = response.told(&["id", "tenant_id", "fingerprint", "created_by", "created_at"]);
    insta::assert_snapshot!(snapshot, @r#"
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
async fn any_json_is_returned_verbatim() {
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
async fn data_is_transformed_by_the_matching_rule() {
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
async fn tokens_without_a_mask_are_redacted_instead_of_masked() {
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

#[tokio::test]
async fn tokens_of_other_tenants_are_not_found() {
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

/// Covers 3.8.
#[tokio::test]
async fn metadata_keeps_its_order() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let new = json!({"type": "token", "data": 1, "metadata": {"b": "2", "a": "1", "c": null}});

    let created = client.post("/tokens", new).await;
    let found = client.get(&format!("/tokens/{}", created.id())).await;

    assert_eq!(found.body["metadata"].to_string(), r#"{"b":"2","a":"1"}"#);
}

#[tokio::test]
async fn empty_masks_redact_the_data() {
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

/// Covers 3.7.
#[tokio::test]
async fn every_type_has_a_default_container_and_is_revealed_verbatim() {
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
async fn bank_account_details_are_shown_to_every_reader() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;

    let data = json!({"routing_number": "021000021", "account_number": "00001"});
    let response = client
        .post("/tokens", json!({"type": "bank", "data": data}))
        .await;

    let details = json!({"routing_number": "021000021", "account_number_last4": "0001"});
    let masked = json!({"routing_number": "021000021", "account_number": "X0001"});
    assert_eq!(response.body["bank"], details);
    assert_eq!(response.body["data"], masked);
}
