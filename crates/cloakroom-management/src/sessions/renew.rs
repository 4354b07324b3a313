//! Computes the MACs of sessions again after the control key was replaced.

use cloakroom_core::access::{AuthenticatedRow as _, RenewedRows};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage::Error;

use super::store;

/// Small enough that a page commits quickly and holds few locks.
const PAGE: i64 = 500;

/// Renews a page of sessions of all tenants, after the lookup value `after`, which becomes that of the last one. `None` if
/// there is none.
pub async fn renew_macs(vault: &Vault, after: &mut String) -> Result<Option<RenewedRows>, Error> {
    let page = store::list_after(&vault.db, after, PAGE).await?;
    let Some((last, _)) = page.last() else {
        return Ok(None);
    };
    after.clone_from(&last.lookup);
    let control = vault.keys.control();
    let (mut rows, mut renewed) = (RenewedRows::default(), Vec::new());
    for (row, row_mac) in page {
        let renewal = row.renew(control, &row_mac);
        if let Some(after) = rows.examine(("session", &row.id), renewal) {
            renewed.push((row.lookup, row_mac, after.to_vec()));
        }
    }
    if !renewed.is_empty() {
        rows.renewed = store::renew(&vault.db, &renewed).await?;
    }
    Ok(Some(rows))
}
