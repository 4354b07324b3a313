//! Deletes expired intents and security codes. They are invisible from the instant they expire.

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_platform::storage;
use uuid::Uuid;

use super::store;
use crate::data_vault::DataVault;

/// Small, so that a batch is short and holds few row locks.
const BATCH: i64 = 1_000;

/// Deletes all expired intents, and expired security codes of the others; returns the number of deleted intents.
pub async fn sweep(vault: &DataVault) -> Result<u64, storage::Error> {
    let full = BATCH.unsigned_abs();
    let mut removed = 0;
    loop {
        let batch = delete_expired(vault).await?;
        removed += batch;
        if batch < full {
            break;
        }
    }
    while store::sweep_codes(&vault.db, BATCH).await? == full {}
    Ok(removed)
}

/// Deletes a batch of expired intents, with audit log entries.
async fn delete_expired(vault: &DataVault) -> Result<u64, storage::Error> {
    let transaction = audit::begin(&vault.audit).await?;
    let deleted = store::sweep(&transaction, BATCH).await?;
    if deleted.is_empty() {
        transaction.roll_back().await;
        return Ok(0);
    }
    let entry = |(tenant, id): &(i32, Uuid)| {
        Entry::by_system(*tenant, Operation::Expire, EntityKind::TokenIntent, *id)
    };
    let entries: Vec<Entry> = deleted.iter().map(entry).collect();
    transaction.commit(&entries).await?;
    Ok(deleted.len() as u64)
}
