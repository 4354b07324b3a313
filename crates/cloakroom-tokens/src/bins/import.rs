//! Imports a compiled table: writes it next to the current one, then switches atomically.

use cloakroom_core::keys::{ControlKey, StoredMac};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage::Db;

use super::chunk::{ChunkPosition, encode};
use super::store::{self, Counts};
use super::{Error, Progress, Table};

/// Result of an import.
#[derive(Clone, Copy, Debug)]
pub struct ImportedTable {
    pub version: i32,
    pub bytes: u64,
}

/// Stores a table and makes it the current one; nodes load it within seconds.
///
/// Nodes are unaffected until the switch. An import that fails halfway leaves unused chunks, which the next import
/// deletes.
pub async fn import(
    vault: &Vault,
    table: &Table,
    source: &str,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ImportedTable, Error> {
    let db = &vault.db;
    let control = vault.keys.control();
    let version = store::reserve(db, source).await.map_err(|error| {
        match error.is_conflict("bin_table_pkey") {
            true => Error::Superseded,
            false => error.into(),
        }
    })?;
    let mut counts = Counts {
        rows: i64::try_from(table.rows()).unwrap_or(i64::MAX),
        ..Counts::default()
    };
    for content in encode(table) {
        let position = ChunkPosition {
            version,
            position: counts.chunks,
        };
        let digest = position.digest(control, &content);
        store::insert_chunk(db, position, &content, &digest).await?;
        counts.chunks += 1;
        counts.bytes += i64::try_from(content.len()).unwrap_or_default();
        let bytes = counts.bytes.unsigned_abs();
        on_progress(Progress::Writing { bytes });
    }
    switch(db, control, version, counts).await?;
    // Chunks of older versions are never read: a failure here only costs disk space.
    let _ = store::delete_older(db, version).await;
    Ok(ImportedTable {
        version,
        bytes: counts.bytes.unsigned_abs(),
    })
}

async fn switch(db: &Db, control: &ControlKey, version: i32, counts: Counts) -> Result<(), Error> {
    let digest = table_digest(control, version, counts);
    let tx = db.begin().await?;
    let is_promoted = store::promote(&tx, version, counts, &digest).await?;
    if !is_promoted {
        drop(tx);
        store::delete_chunks(db, version).await?;
        return Err(Error::Superseded);
    }
    tx.commit().await?;
    Ok(())
}

pub(super) const TABLE_MAC_DOMAIN: &str = "bins.table.v1";

fn table_digest(control: &ControlKey, version: i32, counts: Counts) -> StoredMac {
    let parts = table_parts(version, counts);
    control.authenticate(TABLE_MAC_DOMAIN, &parts.each_ref().map(Vec::as_slice))
}

/// The parts that the MAC of a table covers; chunks have their own.
pub(super) fn table_parts(version: i32, counts: Counts) -> [Vec<u8>; 3] {
    [
        version.to_be_bytes().to_vec(),
        counts.rows.to_be_bytes().to_vec(),
        counts.chunks.to_be_bytes().to_vec(),
    ]
}
