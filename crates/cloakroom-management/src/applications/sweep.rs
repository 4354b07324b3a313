//! Deletes expired applications. Their keys are rejected from the moment they expire.

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::event::key_deleted;
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
        let keys = keys.iter().map(|(tenant, application, id)| {
            let entry = expire(*tenant, EntityKind::ApplicationKey, *id);
            entry.with_event(key_deleted(*application, *id))
        });
        let applications = expired.iter().map(|(tenant, id)| {
            let event = Event::of_id(EventKind::ApplicationDeleted, "application", id);
            expire(*tenant, EntityKind::Application, *id).with_event(event)
        });
        let entries: Vec<Entry> = keys.chain(applications).collect();
        transaction.commit(&entries).await?;
        removed += expired.len() as u64;
    }
}

fn expire(tenant: i32, entity: EntityKind, id: Uuid) -> Entry {
    Entry::by_system(tenant, Operation::Expire, entity, id)
}
