//! Seals the secrets of a tenant's webhooks again after its data key was replaced.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::keys::{ResealedPage, TenantKeys};
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::{Error, store};
use crate::signatures::Secret;

/// Seals all secrets, each in a transaction of its own: the MAC of its row changes too. A tenant has few webhooks.
pub async fn reseal(
    vault: &Vault,
    tenant: TenantId,
    keys: &TenantKeys,
) -> Result<ResealedPage, Error> {
    let mut page = ResealedPage::default();
    for stored in store::list(&vault.db, tenant).await? {
        let id = stored.row.id;
        page.scanned += 1;
        let mut change = access_change::begin(vault, tenant, &[Bucket::RESOURCES]).await?;
        match reseal_one(vault, &mut change, keys, (tenant, id)).await {
            Ok(true) => {
                let (operation, entity) = (Operation::Update, EntityKind::Webhook);
                let entry = Entry::by_system(tenant.number, operation, entity, id);
                change.commit(&[entry]).await?;
                page.rewritten += 1;
            }
            Ok(false) => change.roll_back().await,
            Err(Error::Altered | Error::Keys(_)) => {
                change.roll_back().await;
                page.unreadable += 1;
            }
            Err(error) => {
                change.roll_back().await;
                return Err(error);
            }
        }
    }
    Ok(page)
}

/// Seals one secret; false if the webhook was deleted, or is sealed under the active key already.
async fn reseal_one(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    keys: &TenantKeys,
    (tenant, id): (TenantId, Uuid),
) -> Result<bool, Error> {
    let control = vault.keys.control();
    let Some(stored) = store::lock(change, tenant, id).await? else {
        return Ok(false);
    };
    let mut row = stored.row;
    if !row.is_genuine(control, &stored.row_mac) {
        return Err(Error::Altered);
    }
    let Some(secret) = Secret::reseal(keys, id, &row.secret)? else {
        return Ok(false);
    };
    row.secret = secret;
    let row_mac = row.row_mac(control);
    store::replace_secret(change, &row, &row_mac).await?;
    change.replace(Bucket::RESOURCES, &stored.row_mac, &row_mac)?;
    Ok(true)
}
