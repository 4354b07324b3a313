//! Quotas of a tenant.

use std::time::Duration;

use cloakroom::access::{self, ApplicationKind, Permission, RateLimit, Transform};
use cloakroom::authentication;
use cloakroom::tenants::{self, TenantChanges};
use cloakroom_testkit::{TestDatabase, TestVault, everything, grants};
use http::StatusCode;
use serde_json::{Value, json};

use super::{QUOTAS, manager};

/// Covers 14.8, 14.9.
#[tokio::test]
async fn quotas_default_to_the_deployment_and_can_be_overridden() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.tokenize = 6;
    })
    .await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let before = client.get(QUOTAS).await;
    let own = json!({
        "rate_limit": "1x",
        "log_retention": 172_800,
        "tokenize_limit": 20,
        "detokenize_limit": 30,
        "cvc_retention": 1_800,
        "token_intent_retention": 3_600,
        "card_velocity_limit": 5,
        "threeds": false,
        "color": "red",
    });
    let changed = client.put(QUOTAS, own).await;
    let stored = client.get(QUOTAS).await;
    let some = client.put(QUOTAS, json!({"cvc_retention": null})).await;
    let nothing = client.put(QUOTAS, json!({})).await;
    let all: serde_json::Map<String, Value> = access::TenantQuotas::NAMES
        .into_iter()
        .map(|name| (name.to_owned(), Value::Null))
        .collect();
    let back = client.put(QUOTAS, Value::Object(all)).await;

    insta::assert_snapshot!(before.told(&[]), @r#"
    {
      "rate_limit": "default",
      "log_retention": 86400,
      "tokenize_limit": 6,
      "detokenize_limit": 5,
      "cvc_retention": 3600,
      "token_intent_retention": 86400,
      "card_velocity_limit": 10,
      "threeds": true
    }
    "#);
    insta::assert_snapshot!(changed.told(&[]), @r#"
    {
      "rate_limit": "1x",
      "log_retention": 172800,
      "tokenize_limit": 20,
      "detokenize_limit": 30,
      "cvc_retention": 1800,
      "token_intent_retention": 3600,
      "card_velocity_limit": 5,
      "threeds": false
    }
    "#);
    assert_eq!(stored.body, changed.body);
    assert_eq!(some.body["cvc_retention"], 3_600);
    assert_eq!(some.body["log_retention"], 172_800);
    assert_eq!(nothing.body, some.body);
    assert_eq!(back.body, before.body);
}

/// Covers 14.10.
#[tokio::test]
async fn all_invalid_quotas_are_reported_at_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let before = client.get(QUOTAS).await.body;

    let response = client
        .put(
            QUOTAS,
            json!({
                "rate_limit": "fast",
                "log_retention": 3_599,
                "tokenize_limit": 0,
                "detokenize_limit": 1_001,
                "cvc_retention": "1h",
                "token_intent_retention": 172_801,
                "card_velocity_limit": 0,
                "threeds": "yes",
            }),
        )
        .await;
    let one_of_two = json!({"tokenize_limit": 9, "detokenize_limit": -1});
    let one_of_two = client.put(QUOTAS, one_of_two).await;
    let no_object = client.put(QUOTAS, json!([])).await;

    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let mut names = access::TenantQuotas::NAMES;
    names.sort_unstable();
    assert_eq!(response.refused(), names);
    assert_eq!(one_of_two.refused(), ["detokenize_limit"]);
    assert_eq!(no_object.refused(), ["body"]);
    assert_eq!(client.get(QUOTAS).await.body, before);
}

/// Covers 14.11.
#[tokio::test]
async fn quotas_limit_the_tokens_per_request() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let many = |count: usize| json!(vec!["x"; count]);
    assert_eq!(
        tokens.post("/tokenize", many(5)).await.status,
        StatusCode::OK
    );
    let id = tokens.post("/tokenize", json!("x")).await.body;
    let expression = format!("{{{{ {} }}}}", id.as_str().unwrap());
    let uses = |count: usize| json!(vec![&expression; count]);

    let own = json!({"tokenize_limit": 7, "detokenize_limit": 8});
    let changed = client.put(QUOTAS, own).await;

    assert_eq!(changed.status, StatusCode::OK);
    let cases = [
        ("/tokenize", many(7), StatusCode::OK),
        ("/tokenize", many(8), StatusCode::BAD_REQUEST),
        ("/detokenize", uses(8), StatusCode::OK),
        ("/detokenize", uses(9), StatusCode::BAD_REQUEST),
    ];
    for (path, body, expected) in cases {
        let response = tokens.post(path, body).await;
        assert_eq!(response.status, expected, "{path}: {}", response.body);
    }
}

/// Covers 14.12.
#[tokio::test]
async fn quotas_set_the_retention_of_security_codes() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let card = || {
        json!({"type": "card", "data": {"number": "4242424242424242",
            "expiration_month": 12, "expiration_year": 2099, "cvc": "123"}})
    };
    let long = tokens.post("/tokens", card()).await.id();

    client.put(QUOTAS, json!({"cvc_retention": 2})).await;
    let short = tokens.post("/tokens", card()).await.id();

    let code = async |id: &str| {
        let response = tokens.get(&format!("/tokens/{id}")).await;
        response.body["data"]["cvc"].as_str().map(str::to_owned)
    };
    assert_eq!(code(&short).await.as_deref(), Some("123"));
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert_eq!(code(&short).await, None);
    assert_eq!(code(&long).await.as_deref(), Some("123"));
}

/// Covers 14.9.
#[tokio::test]
async fn callers_carry_the_effective_quotas_of_their_tenant() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            grants(&[Permission::TokenUse]),
        )
        .await;
    let quotas = async || {
        let holder = authentication::authenticate(&vault.vault, &holder.key).await;
        holder.unwrap().quotas.clone()
    };
    let before = quotas().await;

    let own = json!({"log_retention": 172_800, "token_intent_retention": 60});
    client.put(QUOTAS, own).await;
    let by_command = TenantChanges {
        quotas: vec![("rate_limit".to_owned(), json!("unlimited"))],
        ..TenantChanges::default()
    };
    tenants::update_as_operator(&vault.vault, tenant.id, &by_command)
        .await
        .unwrap();

    let after = quotas().await;
    let day = Duration::from_secs(24 * 60 * 60);
    assert_eq!(before.rate_limit, RateLimit::Default);
    assert_eq!(
        (before.log_retention, before.token_intent_retention),
        (day, day)
    );
    assert_eq!(after.rate_limit, RateLimit::Unlimited);
    assert_eq!(after.log_retention, 2 * day);
    assert_eq!(after.token_intent_retention, Duration::from_secs(60));
    assert_eq!(after.cvc_retention, before.cvc_retention);
}

/// Covers 14.21.
#[tokio::test]
async fn tenants_set_quotas_within_the_limits_of_the_operator() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let by_command = async |name: &str, value: Value| {
        let changes = TenantChanges {
            quotas: vec![(name.to_owned(), value)],
            ..TenantChanges::default()
        };
        tenants::update_as_operator(&vault.vault, tenant.id, &changes)
            .await
            .unwrap();
    };
    let put = async |name: &str, value: Value| client.put(QUOTAS, json!({name: value})).await;
    let quota = async |name: &str| client.get(QUOTAS).await.body[name].clone();

    by_command("card_velocity_limit", json!(50)).await;
    assert_eq!(
        put("card_velocity_limit", json!(51)).await.refused(),
        ["card_velocity_limit"]
    );
    assert_eq!(
        put("card_velocity_limit", json!(20)).await.status,
        StatusCode::OK
    );
    assert_eq!(quota("card_velocity_limit").await, 20);
    assert_eq!(
        put("card_velocity_limit", json!(50)).await.status,
        StatusCode::OK
    );
    // A limit that the operator lowers applies whatever the tenant requested.
    by_command("card_velocity_limit", json!(5)).await;
    assert_eq!(quota("card_velocity_limit").await, 5);
    assert_eq!(
        put("card_velocity_limit", json!(null)).await.status,
        StatusCode::OK
    );
    assert_eq!(quota("card_velocity_limit").await, 5);

    by_command("threeds", json!(false)).await;
    assert_eq!(put("threeds", json!(true)).await.refused(), ["threeds"]);
    by_command("log_retention", json!(7_200)).await;
    assert_eq!(
        put("log_retention", json!(3_600)).await.refused(),
        ["log_retention"]
    );
    assert_eq!(
        put("log_retention", json!(7_200)).await.status,
        StatusCode::OK
    );
    let examined = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap();
    assert_eq!(examined.altered, Vec::<String>::new());
}
