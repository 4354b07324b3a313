//! Authentication and authorization.

mod authenticate;
mod escalation;
mod freshness;
mod legacy_keys;
mod routes;
mod tampering;
mod tenants;

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Permission};
use http::StatusCode;
use serde_json::json;

use crate::support::{TestApplication, TestVault, grants};

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

/// Every permission that an application of this type can hold.
pub(crate) fn held_by(kind: ApplicationKind) -> impl Iterator<Item = Permission> {
    let all = ALL_PERMISSIONS.iter().copied();
    all.filter(move |permission| permission.fits(kind))
}
