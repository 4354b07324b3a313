//! Removing intents and security codes whose time has come. Nobody sees them from that instant on.

use super::store;
use crate::storage;
use crate::vault::Vault;

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;

/// Removes every expired intent, and the codes that end before theirs; tells how many intents.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let full = BATCH.unsigned_abs();
    let mut removed = 0;
    loop {
        let batch = store::sweep(vault, BATCH).await?;
        removed += batch;
        if batch < full {
            break;
        }
    }
    while store::sweep_codes(&vault.db, BATCH).await? == full {}
    Ok(removed)
}
