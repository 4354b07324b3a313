//! Deletes old checkout sessions.

use std::time::Duration;

use cloakroom_platform::storage::{Db, Error};

use super::store;

/// How long merchants can read a session after its expiry.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;

/// Deletes all sessions past their retention, in batches.
pub async fn sweep(db: &Db) -> Result<(), Error> {
    while store::sweep(db, BATCH, RETENTION).await? == BATCH.unsigned_abs() {}
    Ok(())
}
