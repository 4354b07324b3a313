//! Removing answers that are a day old, and leases that nobody ended.

use super::store;
use crate::storage::{Db, Error};

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;

/// Removes them, batch by batch. Nothing waits for it: what is old does not count.
pub async fn sweep(db: &Db) -> Result<(), Error> {
    while store::sweep(db, BATCH).await? == BATCH.unsigned_abs() {}
    while store::sweep_leases(db, BATCH).await? == BATCH.unsigned_abs() {}
    Ok(())
}
