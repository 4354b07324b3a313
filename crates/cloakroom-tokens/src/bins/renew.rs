//! Computes the MACs of the BIN table again after the control key was replaced.

use cloakroom_core::access::{self, RenewedRows};
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
        let Some((content, digest)) = store::find_chunk(&vault.db, position).await? else {
            rows.altered += 1;
            access::report_altered("bin_chunk", &position.position);
            continue;
        };
        rows.scanned += 1;
        match position.renew(control, &content, &digest) {
            Renewal::Current => {}
            Renewal::Altered => {
                rows.altered += 1;
                access::report_altered("bin_chunk", &position.position);
            }
            Renewal::Renewed(renewed) => {
                rows.renewed +=
                    store::renew_chunk(&vault.db, position, (&digest, &renewed)).await?;
            }
        }
    }
    let parts = table_parts(version, current.counts);
    let parts = parts.each_ref().map(Vec::as_slice);
    rows.scanned += 1;
    match control.renew(TABLE_MAC_DOMAIN, &parts, &current.digest) {
        Renewal::Current => {}
        Renewal::Altered => {
            rows.altered += 1;
            access::report_altered("bin_table", &version);
        }
        Renewal::Renewed(renewed) => {
            let macs = (&current.digest[..], &renewed[..]);
            rows.renewed += store::renew_table(&vault.db, version, macs).await?;
        }
    }
    Ok(rows)
}
