//! Removing the rows of codes that have expired.

use super::store;
use crate::storage::{self, Db};

/// Rows removed at a time: few enough that nobody waits behind them.
const BATCH: i64 = 1_000;
/// What is left after these is for the next run.
const BATCHES_MAX: usize = 100;

/// Removes codes past their time, and says how many. Safe to run on all nodes at once.
///
/// Reads do not depend on it: an expired row is not found, and its key dies by itself.
pub async fn sweep(db: &Db) -> Result<u64, storage::Error> {
    let mut removed = 0;
    for _ in 0..BATCHES_MAX {
        let batch = store::sweep(db, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            break;
        }
    }
    metrics::counter!("security_codes_swept_total").increment(removed);
    Ok(removed)
}
