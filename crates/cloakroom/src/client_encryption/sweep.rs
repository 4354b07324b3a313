//! Removing keys that have expired. They open nothing from the instant on; this destroys what is left.

use super::store;
use crate::storage::{self, Db};

/// More than tenants make in the time between two sweeps; what is left is for the next one.
const BATCH: i64 = 1_000;

/// Removes expired keys, and says how many.
pub async fn sweep(db: &Db) -> Result<u64, storage::Error> {
    store::sweep(db, BATCH).await
}
