//! Computes the MACs of the BIN table again after the control key was replaced.

use cloakroom_core::access::RenewedRows;
use cloakroom_core::keys::Renewal;
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage::Error;

use super::chunk::ChunkPosition;
use super::import::{TABLE_MAC_DOMAIN, table_parts};
use super::store;

/// Renews the current table and its chunks. A table that a concurrent import replaces has current MACs.
pub async fn renew_macs(vault: &Vault) -> Result<RenewedRows, Error> {
    let mut rows = RenewedRows::default();
    let Some(current) = store::find_current(&vault.db).await? else {
        return Ok(rows);
    };
    let control = vault.keys.control();
    let version = current.version;
    for position in 0..current.counts.chunks {
        let position = ChunkPosition { version, position };
        let chunk = store::find_chunk(&vault.db, position).await?;
        let renewal = chunk
            .as_ref()
            .map_or(Renewal::Altered, |(content, digest)| {
                position.renew(control, content, digest)
            });
        let renewed = rows.examine(("bin_chunk", &position.position), renewal);
        if let (Some(renewed), Some((_, digest))) = (renewed, chunk) {
            rows.renewed += store::renew_chunk(&vault.db, position, (&digest, &renewed)).await?;
        }
    }
    let parts = table_parts(version, current.counts);
    let parts = parts.each_ref().map(Vec::as_slice);
    let renewal = control.renew(TABLE_MAC_DOMAIN, &parts, &current.digest);
    if let Some(renewed) = rows.examine(("bin_table", &version), renewal) {
        let macs = (&current.digest[..], &renewed[..]);
        rows.renewed += store::renew_table(&vault.db, version, macs).await?;
    }
    Ok(rows)
}
