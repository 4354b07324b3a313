//! Deletes a tenant with all its data.
//!
//! A key requests the deletion, a key of another application confirms it, and a job executes it after a delay; until
//! then the tenant works as before and the deletion can be canceled (`cancel.rs`).
//!
//! One transaction executes it: it marks the row as deleted, covered by the row MAC, and destroys the tenant's keys.
//! From then on its API keys are rejected and its data cannot be decrypted. Its rows are deleted in batches
//! (`sweep.rs`).

use cloakroom_core::access::{AuthenticatedRow as _, Permission, TenantRow};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};
use jiff::Timestamp;
use uuid::Uuid;

use super::deletion::Deletion;
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
    let transaction = audit::begin(&vault.audit).await?;
    match advance(vault, &transaction, caller).await {
        Ok(Some(operation)) => Ok(transaction.commit(&[entry(operation)]).await?),
        Ok(None) => {
            transaction.roll_back().await;
            Ok(())
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

/// Writes the next state of the deletion; `None` if the request does not change it.
async fn advance(
    vault: &Vault,
    transaction: &Transaction,
    caller: &Caller,
) -> Result<Option<Operation>, Error> {
    let (control, tenant) = (vault.keys.control(), caller.tenant);
    let (_, now) = lock_verified(vault, transaction, tenant).await?;
    let pending = store::lock_deletion(transaction, tenant).await?;
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
    store::write_deletion(transaction, &deletion, &deletion.row_mac(control)).await?;
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
    let transaction = audit::begin(&vault.audit).await?;
    match mark_deleted(vault, &transaction, tenant, &removal).await {
        Ok(()) => transaction.commit(&[removal.entry]).await?,
        Err(error) => {
            transaction.roll_back().await;
            return Err(error);
        }
    }
    vault.principals.invalidate_all();
    vault.keys.evict(tenant).await;
    Ok(())
}

async fn mark_deleted(
    vault: &Vault,
    transaction: &Transaction,
    tenant: TenantId,
    removal: &Removal,
) -> Result<(), Error> {
    let control = vault.keys.control();
    let (row, now) = lock_verified(vault, transaction, tenant).await?;
    if removal.requires_due {
        let deletion = store::lock_deletion(transaction, tenant).await?;
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
        ..row
    };
    let row_mac = deleted.row_mac(control);
    store::mark_deleted(transaction, &deleted, &row_mac, removal.by).await?;
    keys::destroy_tenant_keys(transaction, tenant).await?;
    Ok(())
}

/// Locks the tenant and verifies its MAC first, so that a row written by SQL never gets a valid MAC.
async fn lock_verified(
    vault: &Vault,
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<(TenantRow, Timestamp), Error> {
    let locked = store::lock(transaction, tenant).await?;
    let (stored, now) = locked.ok_or(Error::NotFound)?;
    match stored.row.is_genuine(vault.keys.control(), &stored.row_mac) {
        true => Ok((stored.row, now)),
        false => Err(Error::Altered),
    }
}
