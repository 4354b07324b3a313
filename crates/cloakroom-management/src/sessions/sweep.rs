//! Deletes expired sessions. They are rejected from the moment they expire.

use cloakroom_platform::storage::{Db, Error};

use super::store;

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;

/// Deletes all expired sessions, in batches.
pub async fn sweep(db: &Db) -> Result<(), Error> {
    while store::sweep(db, BATCH).await? == BATCH.unsigned_abs() {}
    Ok(())
}
