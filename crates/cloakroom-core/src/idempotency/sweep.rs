//! Deletes expired stored responses and expired leases.

use cloakroom_platform::storage::{Db, Error};

use super::store;

/// Rows per statement: few enough that a statement is short and locks little.
const BATCH: i64 = 1_000;

/// Deletes in batches, until a batch is not full.
///
/// Frees space only: every other statement ignores expired rows.
pub async fn sweep(db: &Db) -> Result<(), Error> {
    while store::sweep(db, BATCH).await? == BATCH.unsigned_abs() {}
    while store::sweep_leases(db, BATCH).await? == BATCH.unsigned_abs() {}
    Ok(())
}
