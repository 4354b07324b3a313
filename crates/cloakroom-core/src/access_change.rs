//! A transaction that changes rows which grant access, and writes the access states of their buckets.

use std::ops::Deref;

use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};

use crate::access::{
    self, Anchored, Bucket, LockError, LockedBucket, MacTable, OutdatedMacs, OutdatedRows,
    Reanchored, RenewedRows,
};
use crate::audit::{self, AuditedTransaction, EntityKind, Entry, Operation};
use crate::idempotency::PendingResponse;
use crate::keys::{KeysetChange, VAULT};
use crate::vault::Vault;

/// An audited transaction that holds the locks of the buckets it changes.
///
/// ```ignore
/// let mut change = access_change::begin(vault, tenant, &[bucket]).await?;
/// store::insert(&change, &row, &row_mac).await?;
/// change.insert(bucket, &row_mac);
/// change.commit(&[entry]).await?;
/// ```
pub struct AccessChange<'a> {
    vault: &'a Vault,
    tenant: TenantId,
    transaction: AuditedTransaction<'a>,
    buckets: Vec<LockedBucket>,
}

/// Starts a change of rows in `buckets` of a tenant. Fails if rows in them are not the current ones: a change must not
/// make them current.
pub async fn begin<'a>(
    vault: &'a Vault,
    tenant: TenantId,
    buckets: &[Bucket],
) -> Result<AccessChange<'a>, LockError> {
    vault.keys.refresh_if_stale().await;
    match try_begin(vault, tenant, buckets).await {
        // The rows may be current, and the control key of this process a former one.
        Err(LockError::Stale | LockError::Storage(storage::Error::StaleKey)) => {
            vault.keys.catch_up().await;
            report(try_begin(vault, tenant, buckets).await, tenant)
        }
        result => result,
    }
}

fn report<T>(result: Result<T, LockError>, tenant: TenantId) -> Result<T, LockError> {
    if matches!(result, Err(LockError::Stale)) {
        access::report_stale(tenant);
    }
    result
}

async fn try_begin<'a>(
    vault: &'a Vault,
    tenant: TenantId,
    buckets: &[Bucket],
) -> Result<AccessChange<'a>, LockError> {
    let transaction = audit::begin(&vault.audit).await?;
    match lock_all(vault, &transaction, tenant, buckets).await {
        Ok(buckets) => Ok(AccessChange {
            vault,
            tenant,
            transaction,
            buckets,
        }),
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

/// Locks in the order of the buckets, so that concurrent changes do not deadlock.
async fn lock_all(
    vault: &Vault,
    transaction: &Transaction,
    tenant: TenantId,
    buckets: &[Bucket],
) -> Result<Vec<LockedBucket>, LockError> {
    let mut buckets = buckets.to_vec();
    buckets.sort_unstable();
    buckets.dedup();
    let mut locked = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let (states, control) = (&vault.access_states, vault.keys.control());
        let place = (tenant.number, bucket);
        locked.push(access::lock(transaction, states, control, place).await?);
    }
    Ok(locked)
}

impl Deref for AccessChange<'_> {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl<'a> AccessChange<'a> {
    /// The transaction, for statements that record themselves in the audit log.
    pub fn transaction(&self) -> &AuditedTransaction<'a> {
        &self.transaction
    }

    /// Declares a row that this change inserted into `bucket`.
    pub fn insert(&mut self, bucket: Bucket, row_mac: &[u8]) -> Result<(), LockError> {
        self.locked(bucket)?.insert(row_mac);
        Ok(())
    }

    /// Declares a row that this change deleted.
    pub fn remove(&mut self, bucket: Bucket, row_mac: &[u8]) -> Result<(), LockError> {
        self.locked(bucket)?.remove(row_mac)
    }

    /// Declares a row that this change updated.
    pub fn replace(&mut self, bucket: Bucket, old: &[u8], new: &[u8]) -> Result<(), LockError> {
        self.remove(bucket, old)?;
        self.insert(bucket, new)
    }

    /// Declares that the states are written again with the same rows, because the control key was replaced.
    pub fn renew(&mut self) {
        for locked in &mut self.buckets {
            locked.renew();
        }
    }

    /// Declares changes of the tenant's keys.
    pub fn change_keys(&mut self, keys: KeysetChange) -> Result<(), LockError> {
        for (before, after) in keys.replaced {
            self.replace(Bucket::KEYS, &before, &after)?;
        }
        for member in keys.inserted {
            self.insert(Bucket::KEYS, &member)?;
        }
        Ok(())
    }

    fn locked(&mut self, bucket: Bucket) -> Result<&mut LockedBucket, LockError> {
        let mut buckets = self.buckets.iter_mut();
        let locked = buckets.find(|locked| locked.bucket() == bucket);
        // A change outside of the locked buckets is a programming error; it must not be committed.
        locked.ok_or(LockError::Stale)
    }

    /// Commits the change with its audit entries and the next generation of every changed bucket.
    pub async fn commit(self, entries: &[Entry]) -> Result<(), storage::Error> {
        self.commit_with(entries, PendingResponse::default()).await
    }

    /// Like [`Self::commit`], and stores the response for the request's idempotency key.
    pub async fn commit_with(
        self,
        entries: &[Entry],
        response: PendingResponse<'_>,
    ) -> Result<(), storage::Error> {
        let written = match self.write_states().await {
            Ok(written) => written,
            Err(error) => {
                let keys = &self.vault.keys;
                let is_stale = matches!(error, storage::Error::StaleKey);
                self.roll_back().await;
                if is_stale {
                    keys.evict(VAULT).await;
                }
                return Err(error);
            }
        };
        self.transaction.commit_with(entries, response).await?;
        // Only now: a generation that was rolled back never exists.
        for (bucket, generation) in written {
            let states = &self.vault.access_states;
            states.remember(self.tenant.number, bucket, generation);
        }
        Ok(())
    }

    async fn write_states(&self) -> Result<Vec<(Bucket, i64)>, storage::Error> {
        let control = self.vault.keys.control();
        let mut written = Vec::new();
        for locked in &self.buckets {
            let generation = locked.write(&self.transaction, control).await?;
            written.extend(generation.map(|generation| (locked.bucket(), generation)));
        }
        Ok(written)
    }

    /// Rolls back the change.
    pub async fn roll_back(self) {
        self.transaction.roll_back().await;
    }
}

/// Accepts the present rows of a tenant as the current ones, for an operator who has examined them.
pub async fn reanchor(
    vault: &Vault,
    tenant: TenantId,
    what: Anchored,
) -> Result<Reanchored, storage::Error> {
    let now = vault.clock.now().await?;
    let transaction = audit::begin(&vault.audit).await?;
    let control = vault.keys.control();
    let anchored = (tenant, now, what);
    let written = match access::reanchor(&vault.db, &transaction, control, anchored).await {
        Ok(written) => written,
        Err(error) => {
            transaction.roll_back().await;
            return Err(error);
        }
    };
    let (operation, entity) = (Operation::Update, EntityKind::Tenant);
    let entry = Entry::by_system(tenant.number, operation, entity, tenant.uuid);
    transaction.commit(&[entry]).await?;
    for (bucket, generation) in &written.generations {
        let states = &vault.access_states;
        states.remember(tenant.number, *bucket, *generation);
    }
    vault.principals.invalidate_all();
    vault.keys.evict(tenant).await;
    Ok(written)
}

/// Writes the MACs of rows and of access states again that a former version of the control key made, each bucket in a
/// transaction of its own. Buckets whose rows are not the current ones are counted as altered.
pub async fn renew(
    vault: &Vault,
    tenant: TenantId,
    is_deleted: bool,
    mut outdated: OutdatedRows<'_>,
) -> Result<RenewedRows, storage::Error> {
    let control = vault.keys.control();
    let version = control.active_version();
    let mut buckets = access::list_outdated_states(&vault.db, tenant, version).await?;
    buckets.extend(outdated.by_place.keys().map(|(bucket, _)| *bucket));
    buckets.sort_unstable();
    buckets.dedup();
    for bucket in buckets {
        let is_in_bucket = |place: &(Bucket, MacTable), _: &mut OutdatedMacs| place.0 == bucket;
        let tables: Vec<_> = outdated.by_place.extract_if(.., is_in_bucket).collect();
        let rows: usize = tables.iter().map(|(_, macs)| macs.ids.len()).sum();
        let is_swept = is_deleted && bucket.ends_with_tenant();
        let swept = (tenant.number, bucket);
        let mut is_renewed = !is_swept && renew_bucket(vault, tenant, bucket, &tables).await?;
        // The tenant may have been deleted since it was listed.
        if is_swept || !is_renewed && is_gone(vault, tenant, bucket).await? {
            is_renewed =
                access::renew_swept(&vault.db, &vault.access_states, control, swept).await?;
        }
        let counts = &mut outdated.counts;
        counts.scanned += 1;
        match is_renewed {
            true => counts.renewed += 1 + rows as u64,
            false => counts.altered += 1 + rows as u64,
        }
        failpoint("rotation.bucket_renewed")?;
    }
    Ok(outdated.counts)
}

/// Whether rows of a bucket are being deleted with their tenant.
async fn is_gone(vault: &Vault, tenant: TenantId, bucket: Bucket) -> Result<bool, storage::Error> {
    Ok(tenant != VAULT
        && bucket.ends_with_tenant()
        && !access::is_tenant(&vault.db, tenant).await?)
}

/// Writes a bucket; false if its rows are not the current ones.
async fn renew_bucket(
    vault: &Vault,
    tenant: TenantId,
    bucket: Bucket,
    tables: &[((Bucket, MacTable), OutdatedMacs)],
) -> Result<bool, storage::Error> {
    let mut change = match begin(vault, tenant, &[bucket]).await {
        Ok(change) => change,
        Err(LockError::Stale) => return Ok(false),
        Err(LockError::Storage(error)) => return Err(error),
    };
    let replaced = async {
        for ((_, table), macs) in tables {
            // A row that was changed since it was examined has another MAC already.
            for (before, after) in access::renew_macs(&change, tenant, *table, macs).await? {
                change.replace(bucket, &before, &after)?;
            }
        }
        Ok(())
    };
    match replaced.await {
        Ok(()) => {
            change.renew();
            change.commit(&[]).await?;
            Ok(true)
        }
        Err(LockError::Stale) => {
            change.roll_back().await;
            Ok(false)
        }
        Err(LockError::Storage(error)) => {
            change.roll_back().await;
            Err(error)
        }
    }
}
