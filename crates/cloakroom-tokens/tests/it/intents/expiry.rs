//! Expiry of intents, and integrity of their rows.

use std::time::Duration;

use cloakroom::{ids, jobs};
use cloakroom_testkit::{TestDatabase, TestVault};
use http::StatusCode;
use serde_json::json;

use super::{card, client, rows, until_expired};

/// I05 for intents.
///
/// Covers 18.11.
#[tokio::test]
async fn intents_expire_and_are_swept() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.token_intent_retention = Duration::from_secs(2);
    })
    .await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let created = client.post("/token-intents", card()).await;
    let path = format!("/token-intents/{}", created.id());
    assert_eq!(client.get(&path).await.status, StatusCode::OK);
    let database = vault.database.connect().await;
    until_expired(&database, &created).await;

    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
    let converted = client
        .post("/tokens", json!({"token_intent_id": created.id()}))
        .await;
    assert_eq!(converted.refused(), ["token_intent_id"]);
    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();
    assert_eq!(rows(&vault, "token_intent").await, 0);
    let logged: i64 = database
        .query_one(
            "select count(*) from log where entity_kind = 4 and operation = 9",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(logged, 1, "the expiry of an intent is logged");
}

/// The security code of an intent expires separately. Its key is not stored in the database.
#[tokio::test]
async fn security_codes_expire_before_their_intent() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.security_codes.retention = Duration::from_secs(1);
    })
    .await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    client.post("/token-intents", card()).await;
    let database = vault.database.connect().await;
    let codes = async || -> i64 {
        let sql = "select count(*) from token_intent where code_sealed is not null";
        database.query_one(sql, &[]).await.unwrap().get(0)
    };
    assert_eq!(codes().await, 1);
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();

    assert_eq!((codes().await, rows(&vault, "token_intent").await), (0, 1));
}

/// I10 for intents.
///
/// Covers 18.12.
#[tokio::test]
async fn altered_intents_are_neither_returned_nor_converted() {
    let changes = [
        "kind = 1",
        "expires_at = expires_at + interval '1 hour'",
        "fingerprint = sha256('x')",
        "sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1)",
        "intent_id = '11111111-1111-4111-8111-111111111111'",
    ];
    for change in changes {
        let vault = TestVault::start().await;
        let tenant = vault.tenant().await;
        let client = client(&vault, &tenant).await;
        let mut id = client.post("/token-intents", card()).await.id();
        let database = vault.database.connect().await;
        let sql = format!("update token_intent set {change}");
        database.batch_execute(&sql).await.unwrap();
        if change.starts_with("intent_id") {
            id = "11111111-1111-4111-8111-111111111111".to_owned();
        }

        let found = client.get(&format!("/token-intents/{id}")).await;
        let converted = client.post("/tokens", json!({"token_intent_id": id})).await;

        for response in [found, converted] {
            assert_eq!(
                response.status,
                StatusCode::INTERNAL_SERVER_ERROR,
                "{change}"
            );
            assert_eq!(response.body["code"], "integrity_error", "{change}");
        }
        assert_eq!(rows(&vault, "token").await, 0, "{change}");
    }
}
