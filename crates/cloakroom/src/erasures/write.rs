//! Writing down what was erased, from the record of what was done.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use super::{Erasure, Error, Ledger};
use crate::audit::{self, EntityKind};
use crate::tenants;
use crate::vault::Vault;

/// What was erased within this time. It must reach back to before the oldest backup was made.
///
/// What belongs to a tenant that is gone itself is erased with it, and not named.
pub async fn write(vault: &Vault, within: Duration) -> Result<Ledger, Error> {
    let to = vault.audit.now().await?;
    let from = to.saturating_sub(within).unwrap_or(to);
    let tenants: HashMap<i32, Uuid> = tenants::list(vault)
        .await?
        .into_iter()
        .map(|tenant| (tenant.id.number, tenant.id.uuid))
        .collect();
    let deleted = audit::list_deleted(vault, from, to).await?;
    let named = deleted.into_iter().filter_map(|deleted| {
        let tenant = match deleted.kind {
            EntityKind::Tenant => deleted.id.parse().ok(),
            _ => tenants.get(&deleted.tenant_number).copied(),
        };
        Some(Erasure {
            at: deleted.at,
            tenant: tenant?,
            kind: deleted.kind,
            id: deleted.id,
        })
    });
    let erasures = named.collect();
    Ok(Ledger { from, to, erasures })
}
