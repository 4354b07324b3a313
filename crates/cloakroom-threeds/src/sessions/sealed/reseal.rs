//! Seals the sessions of a tenant again after its data key was replaced.

use cloakroom_core::keys::{ResealedPage, TenantKeys};
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use uuid::Uuid;

use crate::sessions::store;

/// Seals up to `limit` sessions after the id `after`.
pub async fn reseal(
    vault: &Vault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ResealedPage, storage::Error> {
    let mut page = ResealedPage::default();
    for (id, row) in store::list_sealed(&vault.db, tenant, after, limit).await? {
        let record = row.as_ref().map(|row| row.columns.record());
        let sealed = row.as_ref().map(|row| &row.sealed[..]);
        page.add(keys, id, record.as_ref(), sealed.unwrap_or_default());
    }
    store::replace_sealed(&vault.db, tenant, page).await
}
