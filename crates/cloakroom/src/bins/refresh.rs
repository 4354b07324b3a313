//! Bringing a node's table up to the current version, beside the one in use.

use super::chunk::{Decoder, Place};
use super::import::{TABLE, table_parts};
use super::store::{self, Current};
use super::{Error, Table};
use crate::vault::Vault;

/// Loads the current table if this node has another one.
///
/// A damaged table is told to the log once, and the one in use stays.
pub async fn refresh(vault: &Vault) -> Result<(), Error> {
    let Some(current) = store::find_current(&vault.db).await? else {
        return Ok(());
    };
    let version = current.version;
    if version == vault.bins.version() || vault.bins.has_refused(version) {
        return Ok(());
    }
    match load(vault, &current).await {
        Ok(table) => {
            let rows = table.rows();
            metrics::gauge!("bin_table_version").set(f64::from(version));
            vault.bins.swap(version, table);
            tracing::info!(job = "bins", count = rows, "a new BIN table is in use");
            Ok(())
        }
        Err(Error::Damaged) if is_still_current(vault, version).await? => {
            vault.bins.refuse(version);
            tracing::error!(
                job = "bins",
                error.kind = "damaged_bin_table",
                "the BIN table in the database is damaged; the one in use stays"
            );
            Err(Error::Damaged)
        }
        // Removed by the next import while it was being read: the next look finds that one.
        Err(Error::Damaged) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn load(vault: &Vault, current: &Current) -> Result<Table, Error> {
    let control = vault.keys.control();
    let parts = table_parts(current.version, current.counts);
    let parts = parts.each_ref().map(Vec::as_slice);
    if !control.verifies(TABLE, &parts, &current.digest) {
        return Err(Error::Damaged);
    }
    let mut decoder = Decoder::default();
    for position in 0..current.counts.chunks {
        let place = Place {
            version: current.version,
            position,
        };
        let chunk = store::find_chunk(&vault.db, place).await?;
        let (content, digest) = chunk.ok_or(Error::Damaged)?;
        if !place.verifies(control, &content, &digest) {
            return Err(Error::Damaged);
        }
        decoder.take(&content)?;
    }
    decoder.finish()
}

async fn is_still_current(vault: &Vault, version: i32) -> Result<bool, Error> {
    let current = store::find_current(&vault.db).await?;
    Ok(current.is_some_and(|current| current.version == version))
}
