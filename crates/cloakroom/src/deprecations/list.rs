//! Who uses what is deprecated.

use jiff::Timestamp;
use uuid::Uuid;

use super::store;
use crate::ids::TenantId;
use crate::storage;
use crate::vault::Vault;

/// Calls of one application that used one deprecated thing.
#[derive(Debug)]
pub struct Used {
    /// The name of a row of the table, or of one that an earlier version had.
    pub name: String,
    pub application: Uuid,
    /// None once the application is gone.
    pub application_name: Option<String>,
    pub calls: u64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// What the applications of a tenant use, by name and then by calls. What nodes have counted in the
/// last seconds may be missing.
pub async fn list(vault: &Vault, tenant: TenantId) -> Result<Vec<Used>, storage::Error> {
    store::list(&vault.db, tenant.number).await
}
