//! Removing sessions that have ended. They are refused from that instant on.

use super::store;
use crate::storage::{Db, Error};

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;

/// Removes every expired session, batch by batch.
pub async fn sweep(db: &Db) -> Result<(), Error> {
    while store::sweep(db, BATCH).await? == BATCH.unsigned_abs() {}
    Ok(())
}
