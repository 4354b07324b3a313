//! Deletes expired client encryption keys. They decrypt nothing from the instant they expire.

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::store;

/// More keys than tenants create between two sweeps; the next sweep deletes the rest.
const BATCH: i64 = 1_000;

/// Deletes expired keys, with audit log entries, and returns their number.
pub async fn sweep(vault: &Vault) -> Result<usize, storage::Error> {
    let transaction = audit::begin(&vault.audit).await?;
    let deleted = store::sweep(&transaction, BATCH).await?;
    if deleted.is_empty() {
        transaction.roll_back().await;
        return Ok(0);
    }
    let entry = |(tenant, id): &(i32, Uuid)| {
        Entry::by_system(*tenant, Operation::Expire, EntityKind::ClientKey, *id)
    };
    let entries: Vec<Entry> = deleted.iter().map(entry).collect();
    transaction.commit(&entries).await?;
    Ok(deleted.len())
}
