//! Loads the current table, while the previous one remains in use.

use cloakroom_core::vault::Vault;
use cloakroom_platform::telemetry::catalog;

use super::chunk::{ChunkPosition, Decoder};
use super::import::{TABLE_MAC_DOMAIN, table_parts};
use super::store::{self, Current};
use super::{Bins, Error, Table};

/// Loads the current table unless this node already has it.
///
/// A damaged table is logged once, and the previous one remains in use.
pub async fn refresh(vault: &Vault, bins: &Bins) -> Result<(), Error> {
    let Some(current) = store::find_current(&vault.db).await? else {
        return Ok(());
    };
    let version = current.version;
    if version == bins.version() || bins.is_damaged(version) {
        return Ok(());
    }
    let loaded = load(vault, &current).await;
    // The table may be whole, and the control key of this node a former one.
    if matches!(loaded, Err(Error::Damaged)) && vault.keys.catch_up().await {
        return Box::pin(refresh(vault, bins)).await;
    }
    match loaded {
        Ok(table) => {
            let rows = table.rows();
            catalog::BIN_TABLE_VERSION.set(f64::from(version));
            bins.swap(version, table);
            tracing::info!(job = "bins", count = rows, "a new BIN table is in use");
            Ok(())
        }
        Err(Error::Damaged) if is_still_current(vault, version).await? => {
            bins.mark_damaged(version);
            tracing::error!(
                job = "bins",
                error.kind = "damaged_bin_table",
                "the BIN table in the database is damaged; the one in use stays"
            );
            Err(Error::Damaged)
        }
        // Deleted by the next import while it was loading; the next refresh loads that one.
        Err(Error::Damaged) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn load(vault: &Vault, current: &Current) -> Result<Table, Error> {
    let control = vault.keys.control();
    let parts = table_parts(current.version, current.counts);
    let parts = parts.each_ref().map(Vec::as_slice);
    if !control.verifies(TABLE_MAC_DOMAIN, &parts, &current.digest) {
        return Err(Error::Damaged);
    }
    let mut decoder = Decoder::default();
    for position in 0..current.counts.chunks {
        let position = ChunkPosition {
            version: current.version,
            position,
        };
        let chunk = store::find_chunk(&vault.db, position).await?;
        let (content, digest) = chunk.ok_or(Error::Damaged)?;
        if !position.verifies(control, &content, &digest) {
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
