//! Velocity limits against card enumeration.

mod blocked;
mod identifiers;
mod invalid_numbers;
mod limits;
mod vectors;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::config::Secret;
use cloakroom_testkit::{
    Client, TestApplication, TestDatabase, TestRedis, TestResponse, TestVault, everything, grants,
    passes_luhn,
};
use http::StatusCode;
use serde_json::{Value, json};

/// The digits of the target card that a token shows.
const BIN: &str = "42424242";
const LAST4: &str = "4242";
const ALLOWED: usize = 10;

/// Deletes the counters in Redis, like an attacker who can write to it.
const FORGET: &str =
    "for _, name in ipairs(redis.call('KEYS', '*velocity*')) do redis.call('DEL', name) end";

/// The thousand valid card numbers with these first eight and last four digits.
fn candidates() -> Vec<String> {
    let all = (0..10_000).map(|middle| format!("{BIN}{middle:04}{LAST4}"));
    let candidates: Vec<String> = all.filter(|number| passes_luhn(number)).collect();
    assert_eq!(candidates.len(), 1_000);
    candidates
}

async fn start(redis: Option<&TestRedis>) -> TestVault {
    TestVault::start_with(TestDatabase::create().await, |config| {
        config.redis.url = redis.map(|redis| Secret::new(redis.url()));
    })
    .await
}

/// An application with every token permission that its kind may have.
async fn holder(vault: &TestVault, tenant: &Tenant, kind: ApplicationKind) -> TestApplication {
    use Permission::{TokenCreate, TokenIntentCreate, TokenUpdate};
    let granted = match kind {
        ApplicationKind::Public => grants(&[TokenCreate, TokenIntentCreate, TokenUpdate]),
        _ => {
            let mut granted = everything(Transform::Mask);
            granted.permissions = grants(&[TokenIntentCreate]).permissions;
            granted
        }
    };
    vault.holder(tenant, kind, granted).await
}

async fn attacker(vault: &TestVault, kind: ApplicationKind) -> Client {
    let tenant = vault.tenant().await;
    let holder = holder(vault, &tenant, kind).await;
    vault.client_with(Some(&holder.key))
}

fn card(number: &str) -> Value {
    json!({"type": "card", "data": {"number": number}})
}

/// Whether a number was compared: a search that was not rejected, or a token with a fingerprint. A rejection must be a
/// velocity rejection.
fn is_compared(response: &TestResponse) -> bool {
    let body = &response.body;
    if response.status.is_success() {
        let is_search = body.get("pagination").is_some();
        let mut tokens = [body, &body[0], &body["a"], &body["a"][0]].into_iter();
        return is_search || tokens.any(|token| token["fingerprint"].is_string());
    }
    assert_eq!(response.status, StatusCode::TOO_MANY_REQUESTS, "{body}");
    assert_eq!(body["code"], "velocity_exceeded");
    let wait: u64 = response.header("retry-after").parse().unwrap();
    // An hour, rounded up.
    assert!((1..=3_601).contains(&wait), "{wait}");
    false
}
