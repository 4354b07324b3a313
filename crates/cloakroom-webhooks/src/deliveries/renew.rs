//! Computes the MACs of events again after the control key was replaced.

use cloakroom_core::access::RenewedRows;
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage::Error;
use uuid::Uuid;

use super::store;

/// Small enough that a page commits quickly and holds few locks.
const PAGE: i64 = 200;

/// The last event that was renewed: its tenant, event and webhook.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenewedUntil {
    pub tenant: i32,
    pub event: Uuid,
    pub webhook: Uuid,
}

/// Renews a page of events of all tenants. `None` if there is none after this position.
pub async fn renew_macs(
    vault: &Vault,
    after: &mut RenewedUntil,
) -> Result<Option<RenewedRows>, Error> {
    let page = store::list_after(&vault.db, *after, PAGE).await?;
    let Some((last, _)) = page.last() else {
        return Ok(None);
    };
    *after = *last;
    let control = vault.keys.control();
    let (mut rows, mut renewed) = (RenewedRows::default(), Vec::new());
    for (id, event) in page {
        let renewal = event.renew(control, id.tenant, id.webhook);
        if let Some(after) = rows.examine(("webhook_delivery", &id.event), renewal) {
            renewed.push((id, event.mac, after.to_vec()));
        }
    }
    if !renewed.is_empty() {
        rows.renewed = store::renew(&vault.db, &renewed).await?;
    }
    Ok(Some(rows))
}
