//! Privilege escalation through sessions, applications, quotas and tenant deletion.

mod applications;
mod sessions;
mod tenants;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom_testkit::{Client, TestApplication, TestVault, grants, held_by};
use http::StatusCode;
use serde_json::{Value, json};

const SELF: &str = "/tenants/self";

const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;

async fn management(
    vault: &TestVault,
    tenant: &Tenant,
    permissions: &[Permission],
) -> TestApplication {
    let kind = ApplicationKind::Management;
    vault.holder(tenant, kind, grants(permissions)).await
}

/// A key with every permission that a management application can hold.
async fn administrator(vault: &TestVault, tenant: &Tenant) -> Client {
    let all: Vec<Permission> = held_by(ApplicationKind::Management).collect();
    let holder = management(vault, tenant, &all).await;
    vault.client_with(Some(&holder.key))
}

fn reveal_everything() -> Value {
    json!([{
        "description": "Everything", "priority": 1, "container": "/", "transform": "reveal",
        "permissions": ["token:read"],
    }])
}
