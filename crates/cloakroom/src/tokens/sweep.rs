//! Removing tokens whose time has come. Nobody sees them from the instant they expire; this frees
//! what they occupy.

use super::store;
use crate::storage;
use crate::vault::Vault;

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;

/// Removes every expired token, batch by batch, and tells how many there were.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let batch = store::sweep(vault, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(removed);
        }
    }
}
