//! Destroying a tenant's keys, and with them everything that they sealed.

use super::{Keyring, store};
use crate::ids::TenantId;
use crate::storage::{self, Transaction};

/// Overwrites every key of a tenant, inside the transaction that deletes the tenant.
///
/// Nodes that remember the keys forget them by themselves, and nobody can ask for them meanwhile: the
/// tenant's own keys to the API are refused.
pub async fn destroy_tenant_keys(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<(), storage::Error> {
    store::destroy_tenant_keys(transaction, tenant).await
}

impl Keyring {
    /// Forgets what this node remembers of a tenant's keys.
    pub async fn forget(&self, tenant: TenantId) {
        self.fresh.invalidate(&tenant.number).await;
        self.remembered.invalidate(&tenant.number).await;
    }
}
