//! Importing a compiled table: written beside the one in use, then switched at once.

use super::chunk::{Place, encode};
use super::store::{self, Counts};
use super::{Error, Progress, Table};
use crate::keys::ControlKey;
use crate::storage::Db;
use crate::vault::Vault;

/// What was imported.
#[derive(Clone, Copy, Debug)]
pub struct Imported {
    pub version: i32,
    pub bytes: u64,
}

/// Keeps a table and makes it the current one; nodes find it within seconds.
///
/// Until the last moment nothing changes for them. An import that ends halfway leaves chunks that
/// nobody reads, and the next one removes them.
pub async fn import(
    vault: &Vault,
    table: &Table,
    source: &str,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Imported, Error> {
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
        let place = Place {
            version,
            position: counts.chunks,
        };
        let digest = place.digest(control, &content);
        store::insert_chunk(db, place, &content, &digest).await?;
        counts.chunks += 1;
        counts.bytes += i64::try_from(content.len()).unwrap_or_default();
        let bytes = counts.bytes.unsigned_abs();
        tell(Progress::Writing { bytes });
    }
    switch(db, control, version, counts).await?;
    // Chunks of a version that is gone are found by nobody: a failure here costs only room.
    let _ = store::delete_older(db, version).await;
    Ok(Imported {
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

pub(super) const TABLE: &str = "bins.table.v1";

fn table_digest(control: &ControlKey, version: i32, counts: Counts) -> [u8; 32] {
    let parts = table_parts(version, counts);
    control.authenticate(TABLE, &parts.each_ref().map(Vec::as_slice))
}

/// What the digest of a table covers; its chunks have their own.
pub(super) fn table_parts(version: i32, counts: Counts) -> [Vec<u8>; 3] {
    [
        version.to_be_bytes().to_vec(),
        counts.rows.to_be_bytes().to_vec(),
        counts.chunks.to_be_bytes().to_vec(),
    ]
}
