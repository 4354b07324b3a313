//! Deletes the branding of a tenant.

use cloakroom_core::access::{Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{AuditedStatement, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;

use super::{Error, store};

/// Deletes the branding: pages have their default design again.
pub async fn delete(vault: &Vault, caller: &Caller) -> Result<(), Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Update, EntityKind::Tenant, id);
    let mut change = access_change::begin(vault, caller.tenant, &[Bucket::RESOURCES]).await?;
    match remove(&mut change, caller).await {
        Ok(()) => Ok(change.commit(&[entry]).await?),
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

async fn remove(change: &mut AccessChange<'_>, caller: &Caller) -> Result<(), Error> {
    let statement = AuditedStatement::within(change.transaction());
    let row_mac = store::delete(statement, caller.tenant).await?;
    Ok(change.remove(Bucket::RESOURCES, &row_mac.ok_or(Error::NotFound)?)?)
}
