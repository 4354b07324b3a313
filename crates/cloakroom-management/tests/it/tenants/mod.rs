//! Tenant management: settings, quotas, usage reports and deletion.

mod deletion;
mod deletion_requests;
mod quotas;
mod security_contact;
mod settings;
mod usage;

use std::time::{Duration, Instant};

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::members::{self, Email, NewMember, Role};
use cloakroom_testkit::{Client, TestVault, grants};
use http::StatusCode;
use serde_json::{Value, json};

const SELF: &str = "/tenants/self";
const QUOTAS: &str = "/tenants/self/quotas";

/// A client with every tenant permission and no token permission.
async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    let permissions = [
        Permission::TenantRead,
        Permission::TenantUpdate,
        Permission::TenantDelete,
        Permission::ReportRead,
        Permission::LogRead,
    ];
    let holder = vault
        .holder(tenant, ApplicationKind::Management, grants(&permissions))
        .await;
    vault.client_with(Some(&holder.key))
}

/// Polls until `request` returns `expected`. Returns the send time of the last request with another status.
async fn until(expected: StatusCode, request: impl AsyncFn() -> StatusCode) -> Duration {
    let (started, mut last_other) = (Instant::now(), Duration::ZERO);
    loop {
        let sent_at = started.elapsed();
        if request().await == expected {
            return last_other;
        }
        last_other = sent_at;
        assert!(
            sent_at < Duration::from_secs(20),
            "never returned {expected}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn add_member(
    vault: &TestVault,
    tenant: &Tenant,
    email: &str,
    role: Role,
) -> members::Member {
    let new = NewMember {
        email: Email::parse(email).unwrap(),
        role,
        first_name: None,
        last_name: None,
    };
    members::add(&vault.vault, tenant.id, new).await.unwrap()
}

fn note(data: &str) -> Value {
    json!({"type": "token", "data": data})
}

async fn keys_are_destroyed(vault: &TestVault, tenant: &Tenant) -> bool {
    let database = vault.database.connect().await;
    let stored = "select state, length(wrapped) from tenant_key where tenant_id = $1";
    let rows = database.query(stored, &[&tenant.id.number]).await.unwrap();
    let is_destroyed =
        |row: &tokio_postgres::Row| (row.get::<_, i16>(0), row.get::<_, i32>(1)) == (4, 0);
    rows.len() == 6 && rows.iter().all(is_destroyed)
}
