//! Authentication and authorization.

mod authenticate;
mod escalation;
mod freshness;
mod legacy_keys;
mod routes;
mod tampering;
mod tenants;

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{TestApplication, TestVault, grants};
use http::StatusCode;
use serde_json::json;

async fn creator(vault: &TestVault) -> TestApplication {
    let tenant = vault.tenant().await;
    vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            grants(&[Permission::TokenCreate]),
        )
        .await
}

async fn create_status(vault: &TestVault, key: &str) -> StatusCode {
    let new = json!({"type": "token", "data": 1});
    vault
        .client_with(Some(key))
        .post("/tokens", new)
        .await
        .status
}
