//! Seals the token intents of a tenant again after its data key was replaced.

use cloakroom_core::keys::{ResealedPage, TenantKeys};
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::store;

/// Seals up to `limit` intents after the id `after`.
pub async fn reseal(
    vault: &Vault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ResealedPage, storage::Error> {
    let mut page = ResealedPage::default();
    for (id, intent, sealed) in store::list_sealed(&vault.db, tenant, after, limit).await? {
        let record = intent.as_ref().map(|intent| intent.record());
        page.add(keys, id, record.as_ref(), &sealed);
    }
    store::replace_sealed(&vault.db, tenant, page).await
}
