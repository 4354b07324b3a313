//! Deletes the rows of expired codes.

use cloakroom_platform::storage::{self, Db};

use super::store;

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;
/// The next run continues after this many batches.
const BATCHES_MAX: usize = 100;

/// Deletes expired codes and returns their number. Safe to run on several nodes at once.
///
/// Reads do not depend on it: expired rows are not found, and their keys expire independently.
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
