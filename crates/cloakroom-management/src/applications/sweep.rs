//! Deletes expired applications. Their keys are rejected from the moment they expire.

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::store;

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 500;

/// Deletes all expired applications with their keys, in batches; returns the number of applications.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let transaction = audit::begin(&vault.audit).await?;
        let expired = store::sweep(&transaction, BATCH).await?;
        if expired.is_empty() {
            transaction.roll_back().await;
            return Ok(removed);
        }
        let keys = store::sweep_keys(&transaction, &expired).await?;
        let applications = entries(EntityKind::Application, &expired).into_iter();
        let deleted = |(entry, (_, id)): (Entry, &(i32, Uuid))| {
            entry.with_event(Event::of_id(
                EventKind::ApplicationDeleted,
                "application",
                id,
            ))
        };
        let applications = applications.zip(&expired).map(deleted).collect();
        let keys = entries(EntityKind::ApplicationKey, &keys);
        transaction.commit(&[keys, applications].concat()).await?;
        removed += expired.len() as u64;
    }
}

fn entries(entity: EntityKind, expired: &[(i32, Uuid)]) -> Vec<Entry> {
    let entry =
        |(tenant, id): &(i32, Uuid)| Entry::by_system(*tenant, Operation::Expire, entity, *id);
    expired.iter().map(entry).collect()
}
