//! Destroys a tenant's keys (crypto-shredding): everything sealed under them becomes unreadable.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};

use super::keyset::KeysetChange;
use super::{State, store};

/// Overwrites every key of a tenant, in the transaction that deletes the tenant.
///
/// Other nodes evict the keys from their caches when they expire. Until then no request can use them: the tenant's API
/// keys are rejected.
pub async fn destroy_tenant_keys(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<KeysetChange, storage::Error> {
    let rows = store::list_tenant_keys_within(transaction, tenant).await?;
    store::destroy_tenant_keys(transaction, tenant).await?;
    let members = rows.into_iter().map(|mut row| {
        let before = row.member();
        row.state = State::Destroyed as i16;
        (before, row.member())
    });
    Ok(KeysetChange {
        replaced: members.collect(),
        ..KeysetChange::default()
    })
}
