//! Seals the proxies of a tenant again after its data key was replaced.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::keys::{ResealedPage, TenantKeys};
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::row::record;
use super::{Error, store};

/// Seals up to `limit` proxies after the id `after`, each in a transaction of its own: the MAC of its row changes too.
pub async fn reseal(
    vault: &Vault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ResealedPage, Error> {
    let mut page = ResealedPage::default();
    for id in store::list_ids(&vault.db, tenant, after, limit).await? {
        page.scanned += 1;
        page.last = Some(id);
        let bucket = Bucket::of_proxy(id);
        let mut change = access_change::begin(vault, tenant, &[bucket]).await?;
        match reseal_one(vault, &mut change, keys, (tenant, id)).await {
            Ok(true) => {
                let (operation, entity) = (Operation::Update, EntityKind::Proxy);
                let entry = Entry::by_system(tenant.number, operation, entity, id);
                change.commit(&[entry]).await?;
                page.rewritten += 1;
            }
            Ok(false) => change.roll_back().await,
            Err(Error::Altered(_) | Error::Keys(_)) => {
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

/// Seals one proxy; false if it was deleted, or is sealed under the active key already.
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
        return Err(Error::Altered("proxy"));
    }
    let resealed = keys.reseal(&record(&row.id, row.row_version), &row.sealed)?;
    let Some(sealed) = resealed else {
        return Ok(false);
    };
    row.sealed = sealed;
    let row_mac = row.row_mac(control);
    store::replace_sealed(change, &row, &row_mac).await?;
    change.replace(Bucket::of_proxy(id), &stored.row_mac, &row_mac)?;
    Ok(true)
}
