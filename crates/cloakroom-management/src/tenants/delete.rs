//! Deletes a tenant with all its data.
//!
//! A key requests the deletion, a key of another application confirms it, and a job executes it after a delay; until
//! then the tenant works as before and the deletion can be canceled (`cancel.rs`).
//!
//! One transaction executes it: it marks the row as deleted, covered by the row MAC, and destroys the tenant's keys.
//! From then on its API keys are rejected and its data cannot be decrypted. Its rows are deleted in batches
//! (`sweep.rs`).

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission, TenantRow};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};
use jiff::Timestamp;
use uuid::Uuid;

use super::deletion::Deletion;
use super::store::StoredTenant;
use super::{Error, store};

/// Deletions that one run of the job executes.
const DUE_MAX: i64 = 10;

/// Requests or confirms the deletion of the caller's own tenant, or executes it if `immediate_deletion` is configured.
pub async fn delete(vault: &Vault, caller: &Caller) -> Result<(), Error> {
    caller.require_plain(Permission::TenantDelete)?;
    let tenant = caller.tenant;
    let entry = |operation| Entry::new(caller, operation, EntityKind::Tenant, tenant.uuid);
    if vault.config.tenants.immediate_deletion {
        let removal = Removal::at_once(Some(caller.application), entry(Operation::Delete));
        return remove(vault, tenant, removal).await;
    }
    let mut change = access_change::begin(vault, tenant, &[Bucket::RESOURCES]).await?;
    match advance(vault, &mut change, caller).await {
        Ok(Some(operation)) => Ok(change.commit(&[entry(operation)]).await?),
        Ok(None) => {
            change.roll_back().await;
            Ok(())
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

/// Writes the next state of the deletion; `None` if the request does not change it.
async fn advance(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    caller: &Caller,
) -> Result<Option<Operation>, Error> {
    let (control, tenant) = (vault.keys.control(), caller.tenant);
    let (_, now) = lock_verified(vault, change, tenant).await?;
    let pending = store::lock_deletion(change, tenant).await?;
    let former_mac = pending.as_ref().map(|(_, row_mac)| row_mac.clone());
    let next = match pending {
        // A row written by SQL is not a valid request.
        Some((deletion, row_mac)) if deletion.is_genuine(control, &row_mac) => {
            let delay = vault.config.tenants.deletion_delay;
            deletion.advance(caller.application, now, delay)?
        }
        _ => Some(Deletion::request(tenant, caller.application, now)),
    };
    let Some((deletion, operation)) = next else {
        return Ok(None);
    };
    let row_mac = deletion.row_mac(control);
    store::write_deletion(change, &deletion, &row_mac).await?;
    if let Some(former_mac) = former_mac {
        change.remove(Bucket::RESOURCES, &former_mac)?;
    }
    change.insert(Bucket::RESOURCES, &row_mac)?;
    Ok(Some(operation))
}

/// Executes the deletions that are due.
pub async fn delete_due(vault: &Vault) -> Result<(), storage::Error> {
    for (deletion, row_mac) in store::list_due(&vault.db, DUE_MAX).await? {
        let TenantId { number, uuid } = deletion.tenant;
        let removed = match deletion.is_genuine(vault.keys.control(), &row_mac) {
            true => {
                let entry = Entry::by_system(number, Operation::Delete, EntityKind::Tenant, uuid);
                remove(vault, deletion.tenant, Removal::due(entry)).await
            }
            false => Err(Error::Altered),
        };
        match removed {
            // `NotFound`: canceled after it was listed.
            Ok(()) | Err(Error::NotFound) => {}
            Err(Error::Storage(error)) => return Err(error),
            Err(_) => tracing::error!(
                job = "sweep",
                error.kind = "altered_row",
                tenant.id = %uuid,
                "the deletion of a tenant was written or changed outside the vault; it is not executed"
            ),
        }
    }
    Ok(())
}

/// Deletes a tenant again after an older backup restored it.
pub async fn delete_as_operator(vault: &Vault, tenant: TenantId) -> Result<(), Error> {
    let (number, id) = (tenant.number, tenant.uuid);
    let entry = Entry::by_system(number, Operation::Delete, EntityKind::Tenant, id);
    remove(vault, tenant, Removal::at_once(None, entry)).await
}

/// A removal of a tenant.
struct Removal {
    by: Option<Uuid>,
    entry: Entry,
    /// Whether a confirmed deletion must be due.
    requires_due: bool,
}

impl Removal {
    fn at_once(by: Option<Uuid>, entry: Entry) -> Self {
        Self {
            by,
            entry,
            requires_due: false,
        }
    }

    fn due(entry: Entry) -> Self {
        Self {
            by: None,
            entry,
            requires_due: true,
        }
    }
}

async fn remove(vault: &Vault, tenant: TenantId, removal: Removal) -> Result<(), Error> {
    // An operator can delete a tenant whose webhooks or branding are not current.
    let buckets: &[Bucket] = match removal.requires_due {
        true => &[Bucket::TENANT, Bucket::RESOURCES, Bucket::KEYS],
        false => &[Bucket::TENANT, Bucket::KEYS],
    };
    let mut change = access_change::begin(vault, tenant, buckets).await?;
    match mark_deleted(vault, &mut change, tenant, &removal).await {
        Ok(()) => change.commit(&[removal.entry]).await?,
        Err(error) => {
            change.roll_back().await;
            return Err(error);
        }
    }
    vault.principals.invalidate_all();
    vault.keys.evict(tenant).await;
    Ok(())
}

async fn mark_deleted(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    tenant: TenantId,
    removal: &Removal,
) -> Result<(), Error> {
    let control = vault.keys.control();
    let (stored, now) = lock_verified(vault, change, tenant).await?;
    if removal.requires_due {
        let deletion = store::lock_deletion(change, tenant).await?;
        let (deletion, row_mac) = deletion.ok_or(Error::NotFound)?;
        if !deletion.is_genuine(control, &row_mac) {
            return Err(Error::Altered);
        }
        if !deletion.is_due(now) {
            return Err(Error::NotFound);
        }
    }
    let deleted = TenantRow {
        deleted_at: Some(now),
        ..stored.row
    };
    let row_mac = deleted.row_mac(control);
    store::mark_deleted(change, &deleted, &row_mac, removal.by).await?;
    change.replace(Bucket::TENANT, &stored.row_mac, &row_mac)?;
    let keys = keys::destroy_tenant_keys(change, tenant).await?;
    change.change_keys(keys)?;
    Ok(())
}

/// Locks the tenant and verifies its MAC first, so that a row written by SQL never gets a valid MAC.
async fn lock_verified(
    vault: &Vault,
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<(StoredTenant, Timestamp), Error> {
    let locked = store::lock(transaction, tenant).await?;
    let (stored, now) = locked.ok_or(Error::NotFound)?;
    match stored.row.is_genuine(vault.keys.control(), &stored.row_mac) {
        true => Ok((stored, now)),
        false => Err(Error::Altered),
    }
}
