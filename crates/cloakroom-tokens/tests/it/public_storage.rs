//! What public keys may store: all visitors of a page have them.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::config::Secret;
use cloakroom::tenants::{self, TenantChanges};
use cloakroom_testkit::{TestDatabase, TestRedis, TestVault, grants};
use http::StatusCode;
use serde_json::{Value, json};

const GRANTED: [Permission; 3] = [
    Permission::TokenCreate,
    Permission::TokenUpdate,
    Permission::TokenIntentCreate,
];

fn token(bytes: usize) -> Value {
    json!({"type": "token", "data": "x".repeat(bytes)})
}

/// Covers 3.36.
#[tokio::test]
async fn public_keys_store_64_kib_at_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let statuses = async |kind| {
        let holder = vault.holder(&tenant, kind, grants(&GRANTED)).await;
        let client = vault.client_with(Some(&holder.key));
        let path = format!(
            "/tokens/{}",
            client.post("/tokens", token(60_000)).await.id()
        );
        let part = "x".repeat(25_000);
        let document = json!({"a": part, "b": part, "c": part});
        [
            client.post("/tokens", token(70_000)).await,
            client.post("/tokenize", document).await,
            client.post("/token-intents", token(70_000)).await,
            client
                .patch(&path, json!({"data": "x".repeat(70_000)}))
                .await,
        ]
        .map(|response| response.status.as_u16())
    };

    assert_eq!(statuses(ApplicationKind::Public).await, [413; 4]);
    assert_eq!(
        statuses(ApplicationKind::Private).await,
        [201, 200, 201, 200]
    );
}

/// Covers 3.37.
#[tokio::test]
async fn public_keys_store_a_gibibyte_of_large_values_a_day_and_any_card() {
    let redis = TestRedis::start(&[]).await;
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.redis.url = Some(Secret::new(redis.url()));
        config.limits.enabled = true;
    })
    .await;
    let (tenant, other) = (vault.tenant().await, vault.tenant().await);
    let public = async |tenant| {
        let granted = grants(&GRANTED);
        let holder = vault.holder(tenant, ApplicationKind::Public, granted);
        vault.client_with(Some(&holder.await.key))
    };
    let (client, other) = (public(&tenant).await, public(&other).await);
    assert!(
        client
            .post("/tokens", token(20_000))
            .await
            .status
            .is_success()
    );
    let names = redis.keys().await;
    let counter = names.iter().find(|name| name.contains("public-storage"));
    let used = (1 << 30) - 10_000;
    redis
        .run(&format!("SET {} {used} KEEPTTL", counter.unwrap()))
        .await;

    let rejected = client.post("/tokens", token(20_000)).await;
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let card = client.post("/tokens", card).await;
    let elsewhere = other.post("/tokens", token(20_000)).await;

    assert_eq!(rejected.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(rejected.body["code"], "rate_limited", "{}", rejected.body);
    let wait: u64 = rejected.header("retry-after").parse().unwrap();
    assert!((86_000..=86_400).contains(&wait), "{wait}");
    for accepted in [card, elsewhere] {
        assert_eq!(accepted.status, StatusCode::CREATED, "{}", accepted.body);
    }
    let raised = TenantChanges {
        quotas: vec![("rate_limit".to_owned(), json!("2x"))],
        ..Default::default()
    };
    tenants::update_as_operator(&vault.vault, tenant.id, &raised)
        .await
        .unwrap();
    let accepted = client.post("/tokens", token(20_000)).await;
    assert_eq!(accepted.status, StatusCode::CREATED, "{}", accepted.body);
}
