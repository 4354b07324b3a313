//! Creating, reading and deleting intents.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{TestVault, grants};
use http::StatusCode;
use serde_json::{Value, json};

use super::{card, client, rows};

/// Covers 18.1, 18.2.
#[tokio::test]
async fn intents_are_created_read_and_deleted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;

    let created = client.post("/token-intents", card()).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let path = format!("/token-intents/{}", created.id());
    assert_eq!(
        created.header("location"),
        format!("{}{path}", vault.base_url)
    );
    let snapshot = created.told(&[
        "id",
        "tenant_id",
        "fingerprint",
        "created_by",
        "created_at",
        "expires_at",
        "card",
    ]);
    insta::assert_snapshot!(snapshot, @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "type": "card",
      "card": "[card]",
      "fingerprint": "[fingerprint]",
      "created_by": "[created_by]",
      "created_at": "[created_at]",
      "expires_at": "[expires_at]"
    }
    "#);
    assert_eq!(created.body["card"]["last4"], "4242");
    let time =
        |name: &str| -> jiff::Timestamp { created.body[name].as_str().unwrap().parse().unwrap() };
    let lifetime = time("created_at").duration_until(time("expires_at"));
    assert_eq!(lifetime.as_secs(), 24 * 60 * 60);
    let id: uuid::Uuid = created.id().parse().unwrap();
    assert_eq!(id.get_version_num(), 4);
    assert_eq!(rows(&vault, "token_intent").await, 1, "one row");
    assert_eq!(rows(&vault, "security_code").await, 0, "no separate code");

    let found = client.get(&path).await;
    assert_eq!((found.status, &found.body), (StatusCode::OK, &created.body));

    let deleted = client.delete(&path).await;
    assert_eq!(
        (deleted.status, deleted.bytes.len()),
        (StatusCode::NO_CONTENT, 0)
    );
    for response in [client.get(&path).await, client.delete(&path).await] {
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(rows(&vault, "token_intent").await, 0);
}

/// Covers 18.3.
#[tokio::test]
async fn intents_have_the_fingerprint_and_details_of_their_token() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let cases = [
        card(),
        json!({"type": "card_number", "data": "4242424242424242"}),
        json!({"type": "bank", "data": {"routing_number": "021000021", "account_number": "00001"}}),
        json!({"type": "token", "data": {"a": 1}}),
        json!({"type": "social_security_number", "data": "111223333"}),
        json!({"type": "employer_id_number", "data": "123456789"}),
    ];
    for case in cases {
        let intent = client.post("/token-intents", case.clone()).await;
        let token = client.post("/tokens", case.clone()).await;
        assert_eq!(
            intent.status,
            StatusCode::CREATED,
            "{case}: {}",
            intent.body
        );
        for name in ["fingerprint", "card", "bank", "type", "tenant_id"] {
            assert_eq!(intent.body[name], token.body[name], "{name} of {case}");
        }
        assert!(intent.body["fingerprint"].is_string());
        assert!(intent.body.get("data").is_none());
    }
}

/// Covers 18.4.
#[tokio::test]
async fn invalid_intents_are_rejected_by_attribute() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let cases = [
        (json!({}), vec!["data", "type"]),
        (json!({"type": "card"}), vec!["data"]),
        (
            json!({"type": "network_token", "data": {"number": "4242424242424242"}}),
            vec!["type"],
        ),
        (json!({"type": "cards", "data": 1}), vec!["type"]),
        (
            json!({"type": "card", "data": {"number": "4242424242424241"}}),
            vec!["data.number"],
        ),
    ];
    for (body, invalid) in cases {
        let response = client.post("/token-intents", body.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(response.refused(), invalid, "{body}");
    }
}

/// Covers 18.14.
#[tokio::test]
async fn intent_operations_are_logged() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let logs = vault
        .holder(
            &tenant,
            ApplicationKind::Management,
            grants(&[Permission::LogRead]),
        )
        .await;
    let logs = vault.client_with(Some(&logs.key));
    let messages = async |id: &str| -> Vec<String> {
        let response = logs
            .get(&format!("/logs?entity_type=token_intent&entity_id={id}"))
            .await;
        let message = |it: &Value| it["message"].as_str().unwrap().to_owned();
        response.items().iter().map(message).collect()
    };

    let deleted = client.post("/token-intents", card()).await.id();
    client.get(&format!("/token-intents/{deleted}")).await;
    client.delete(&format!("/token-intents/{deleted}")).await;
    let converted = client.post("/token-intents", card()).await.id();
    client
        .post("/tokens", json!({"token_intent_id": converted}))
        .await;

    assert_eq!(
        messages(&deleted).await,
        [
            "Token intent deleted",
            "Token intent retrieved",
            "Token intent created"
        ]
    );
    assert_eq!(
        messages(&converted).await,
        ["Token intent converted", "Token intent created"]
    );
}
