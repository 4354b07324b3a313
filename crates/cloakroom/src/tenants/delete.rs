//! Deleting a tenant with everything that is its own.
//!
//! One transaction marks the row, under its digest, and destroys the tenant's keys: from then on its API
//! keys are refused and nothing that it sealed can be opened. The rows follow in batches (`sweep.rs`).

use uuid::Uuid;

use super::{Error, store};
use crate::access::{Authenticated as _, Permission, TenantRow};
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::ids::TenantId;
use crate::keys;
use crate::vault::Vault;

/// Deletes the caller's own tenant for good. Other nodes know of it within five seconds.
pub async fn delete(vault: &Vault, caller: &Caller) -> Result<(), Error> {
    caller.require_plain(Permission::TenantDelete)?;
    let tenant = caller.tenant;
    let entry = Entry::of(caller, Operation::Delete, EntityKind::Tenant, tenant.uuid);
    remove(vault, tenant, Some(caller.application), entry).await
}

/// Deletes a tenant again that an older backup brought back.
pub(crate) async fn delete_by_command(vault: &Vault, tenant: TenantId) -> Result<(), Error> {
    let (number, id) = (tenant.number, tenant.uuid);
    let entry = Entry::by_system(number, Operation::Delete, EntityKind::Tenant, id);
    remove(vault, tenant, None, entry).await
}

async fn remove(
    vault: &Vault,
    tenant: TenantId,
    by: Option<Uuid>,
    entry: Entry,
) -> Result<(), Error> {
    let control = vault.keys.control();
    let recorded = audit::begin(vault).await?;
    let locked = store::lock(&recorded, tenant).await?;
    let found = locked.ok_or(Error::NotFound);
    let found = found.and_then(
        |(kept, now)| match kept.row.is_genuine(control, &kept.row_mac) {
            true => Ok((kept.row, now)),
            // Deleting would sign what somebody else wrote into the row.
            false => Err(Error::Altered),
        },
    );
    let (row, now) = match found {
        Ok(found) => found,
        Err(error) => {
            recorded.roll_back().await;
            return Err(error);
        }
    };
    let deleted = TenantRow {
        deleted_at: Some(now),
        ..row
    };
    store::mark_deleted(&recorded, &deleted, &deleted.row_mac(control), by).await?;
    keys::destroy_tenant_keys(&recorded, tenant).await?;
    recorded.commit(&[entry]).await?;
    vault.authenticator.forget_all();
    vault.keys.forget(tenant).await;
    Ok(())
}
