//! Computes the MACs of imported batches again after the control key was replaced.
//!
//! The MAC of a batch's content cannot be computed again, because its lines are not stored. An import that was interrupted
//! before the rotation can be continued until the former key is destroyed.

use cloakroom_core::access::{AuthenticatedRow as _, RenewedRows};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage::Error;
use uuid::Uuid;

use super::store;

/// Small enough that a page commits quickly and holds few locks.
const PAGE: i64 = 200;

/// The last batch that was renewed: its tenant, import and first line.
pub type RenewedUntil = (i32, Uuid, i64);

/// Renews a page of batches of all tenants. `None` if there is none after this position.
pub async fn renew_macs(
    vault: &Vault,
    after: &mut RenewedUntil,
) -> Result<Option<RenewedRows>, Error> {
    let page = store::list_after(&vault.db, *after, PAGE).await?;
    let Some((last, _)) = page.last() else {
        return Ok(None);
    };
    *after = (last.tenant, last.import, last.first_line);
    let control = vault.keys.control();
    let (mut rows, mut renewed) = (RenewedRows::default(), Vec::new());
    for (batch, row_mac) in page {
        let renewal = batch.renew(control, &row_mac);
        if let Some(after) = rows.examine(("import_batch", &batch.import), renewal) {
            renewed.push((batch, row_mac, after.to_vec()));
        }
    }
    if !renewed.is_empty() {
        rows.renewed = store::renew(&vault.db, &renewed).await?;
    }
    Ok(Some(rows))
}
