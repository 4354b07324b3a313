//! The audit log: what tenants see of it, and how tampering is detected.

mod days;
mod entries;
mod export;
mod list;
mod retention;
mod role;
mod sinks;
mod streams;
mod time_stamps;
mod verify;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom_testkit::{Client, TestVault, grants};
use serde_json::{Value, json};

fn note(value: &str) -> Value {
    json!({"type": "token", "data": value, "mask": "{{ data | reveal_last: 2 }}"})
}

/// A client that may read the logs of a tenant.
async fn reader(vault: &TestVault, tenant: &Tenant) -> Client {
    let grants = grants(&[Permission::LogRead]);
    let holder = vault
        .holder(tenant, ApplicationKind::Management, grants)
        .await;
    vault.client_with(Some(&holder.key))
}
