//! Deletes expired applications. Their keys are rejected from the moment they expire.

use std::collections::BTreeMap;

use cloakroom_core::access::{Bucket, LockError};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::event::key_deleted;
use super::store;

/// Expired applications that are listed at once.
const BATCH: i64 = 500;

/// Deletes all expired applications with their keys; returns the number of applications.
///
/// One transaction per bucket: rows that were restored by SQL stop the sweep of their bucket only.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let expired = store::list_expired(&vault.db, BATCH).await?;
        let mut buckets: BTreeMap<(i32, Bucket), (TenantId, Vec<Uuid>)> = BTreeMap::new();
        for (tenant, id) in expired {
            let place = (tenant.number, Bucket::of_application(id));
            let (_, ids) = buckets.entry(place).or_insert((tenant, Vec::new()));
            ids.push(id);
        }
        let mut batch = 0;
        for ((_, bucket), (tenant, ids)) in buckets {
            batch += sweep_bucket(vault, tenant, bucket, &ids).await?;
        }
        if batch == 0 {
            return Ok(removed);
        }
        removed += batch;
    }
}

async fn sweep_bucket(
    vault: &Vault,
    tenant: TenantId,
    bucket: Bucket,
    ids: &[Uuid],
) -> Result<u64, storage::Error> {
    let mut change = match access_change::begin(vault, tenant, &[bucket]).await {
        Ok(change) => change,
        // Reported already. The rows grant nothing.
        Err(LockError::Stale) => return Ok(0),
        Err(LockError::Storage(error)) => return Err(error),
    };
    match remove(&mut change, tenant, bucket, ids).await {
        // Another node was faster.
        Ok((0, _)) | Err(LockError::Stale) => {
            change.roll_back().await;
            Ok(0)
        }
        Ok((applications, entries)) => {
            change.commit(&entries).await?;
            Ok(applications)
        }
        Err(LockError::Storage(error)) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

/// Deletes the applications and their keys; returns their number and the audit log entries.
async fn remove(
    change: &mut AccessChange<'_>,
    tenant: TenantId,
    bucket: Bucket,
    ids: &[Uuid],
) -> Result<(u64, Vec<Entry>), LockError> {
    let expire = |entity, id: Uuid| Entry::by_system(tenant.number, Operation::Expire, entity, id);
    let (mut of_keys, mut of_applications) = (Vec::new(), Vec::new());
    for (id, row_mac) in store::delete_expired(change, tenant, ids).await? {
        change.remove(bucket, &row_mac)?;
        let event = Event::of_id(EventKind::ApplicationDeleted, "application", id);
        of_applications.push(expire(EntityKind::Application, id).with_event(event));
        for (key, row_mac) in store::delete_keys(change, tenant, id).await? {
            change.remove(bucket, &row_mac)?;
            let entry = expire(EntityKind::ApplicationKey, key);
            of_keys.push(entry.with_event(key_deleted(id, key)));
        }
    }
    let applications = of_applications.len() as u64;
    of_keys.append(&mut of_applications);
    Ok((applications, of_keys))
}
