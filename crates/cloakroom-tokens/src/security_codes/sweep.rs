//! Deletes the rows of expired codes.

use cloakroom_core::events::{self, Event, EventKind};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use serde_json::json;

use super::store;

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;
/// The next run continues after this many batches.
const BATCHES_MAX: usize = 100;

/// Deletes expired codes and returns their number. Safe to run on several nodes at once.
///
/// Reads do not depend on it: expired rows are not found, and their keys expire independently.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    for _ in 0..BATCHES_MAX {
        let batch = delete_expired(vault).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            break;
        }
    }
    catalog::SECURITY_CODES_SWEPT.increment(removed);
    Ok(removed)
}

/// Deletes a batch of expired codes, with the events of their tokens.
async fn delete_expired(vault: &Vault) -> Result<u64, storage::Error> {
    let transaction = vault.db.begin().await?;
    let tokens = store::sweep(&transaction, BATCH).await?;
    let count = tokens.len() as u64;
    let event = |(tenant, id): (i32, String)| {
        let data = json!({"token": {"id": id, "property_name": "cvc"}});
        (
            tenant,
            Event::new(EventKind::TokenPropertyExpired, id, data),
        )
    };
    let events: Vec<(i32, Event)> = tokens.into_iter().map(event).collect();
    if !events.is_empty() {
        events::insert(&transaction, vault.keys.control(), &events).await?;
    }
    transaction.commit().await?;
    Ok(count)
}
