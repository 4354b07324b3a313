//! Deletes expired keys. They are unusable from the moment they expire; this destroys the key material.

use cloakroom_platform::storage::{self, Db};

use super::store;

/// More keys than tenants create between two sweeps; the next sweep deletes the rest.
const BATCH: i64 = 1_000;

/// Deletes expired keys and returns their number.
pub async fn sweep(db: &Db) -> Result<u64, storage::Error> {
    store::sweep(db, BATCH).await
}
