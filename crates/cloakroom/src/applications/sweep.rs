//! Removing applications whose time has come. Their keys are refused from the instant they expire.

use uuid::Uuid;

use super::store;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::storage;
use crate::vault::Vault;

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 500;

/// Removes every expired application with its keys, batch by batch, and tells how many there were.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let recorded = audit::begin(vault).await?;
        let gone = store::sweep(&recorded, BATCH).await?;
        if gone.is_empty() {
            recorded.roll_back().await;
            return Ok(removed);
        }
        let keys = store::sweep_keys(&recorded, &gone).await?;
        let applications = entries(EntityKind::Application, &gone);
        let keys = entries(EntityKind::ApplicationKey, &keys);
        recorded.commit(&[keys, applications].concat()).await?;
        removed += gone.len() as u64;
    }
}

fn entries(entity: EntityKind, gone: &[(i32, Uuid)]) -> Vec<Entry> {
    let entry =
        |(tenant, id): &(i32, Uuid)| Entry::by_system(*tenant, Operation::Expire, entity, *id);
    gone.iter().map(entry).collect()
}
