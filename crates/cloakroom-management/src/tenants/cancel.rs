//! Cancels and lists pending deletions of tenants.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;

use super::deletion::Deletion;
use super::{Error, store};

/// Maximum number of deletions listed. More than one at a time is rare.
const LISTED_MAX: i64 = 1_000;

/// Cancels the deletion of the caller's own tenant, confirmed or not.
///
/// Requires `tenant:update` only, so that a key that cannot delete the tenant can still prevent it.
pub async fn cancel_deletion(vault: &Vault, caller: &Caller) -> Result<(), Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let (tenant, operation) = (caller.tenant, Operation::CancelDeletion);
    let entry = Entry::new(caller, operation, EntityKind::Tenant, tenant.uuid);
    cancel(vault, tenant, entry).await
}

/// Cancels the deletion of any tenant, for the operator.
pub async fn cancel_deletion_as_operator(vault: &Vault, tenant: TenantId) -> Result<(), Error> {
    let (number, id) = (tenant.number, tenant.uuid);
    let entry = Entry::by_system(number, Operation::CancelDeletion, EntityKind::Tenant, id);
    cancel(vault, tenant, entry).await
}

/// Locks the tenant, like every operation on its deletion.
async fn cancel(vault: &Vault, tenant: TenantId, entry: Entry) -> Result<(), Error> {
    let mut change = access_change::begin(vault, tenant, &[Bucket::RESOURCES]).await?;
    let canceled = async {
        let locked = store::lock(&change, tenant).await?;
        locked.ok_or(Error::NotFound)?;
        let row_mac = store::remove_deletion(&change, tenant).await?;
        change.remove(Bucket::RESOURCES, &row_mac.ok_or(Error::NoDeletion)?)?;
        Ok(())
    };
    match canceled.await {
        Ok(()) => Ok(change.commit(&[entry]).await?),
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

/// Finds the pending deletion of a tenant.
pub async fn find_deletion(vault: &Vault, tenant: TenantId) -> Result<Option<Deletion>, Error> {
    let Some((deletion, row_mac)) = store::find_deletion(&vault.db, tenant).await? else {
        return Ok(None);
    };
    if !deletion.is_genuine(vault.keys.control(), &row_mac) {
        return Err(Error::Altered);
    }
    let now = vault.clock.now().await?;
    Ok(Some(deletion).filter(|deletion| deletion.is_pending(now)))
}

/// Lists all pending deletions, for the operator. Deletions written by SQL are never executed and not listed.
pub async fn list_deletions(vault: &Vault) -> Result<Vec<Deletion>, storage::Error> {
    let now = vault.clock.now().await?;
    let listed = store::list_deletions(&vault.db, LISTED_MAX).await?;
    let is_pending = |(deletion, row_mac): &(Deletion, Vec<u8>)| {
        deletion.is_genuine(vault.keys.control(), row_mac) && deletion.is_pending(now)
    };
    let pending = listed.into_iter().filter(is_pending);
    Ok(pending.map(|(deletion, _)| deletion).collect())
}
