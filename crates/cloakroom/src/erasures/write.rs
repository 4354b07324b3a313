//! Builds the ledger of erasures from the verified audit log.

use std::collections::HashMap;
use std::time::Duration;

use cloakroom_core::audit::{self, EntityKind, ListDeletedError, TrustedCheckpoints};
use cloakroom_core::vault::Vault;
use cloakroom_management::tenants;
use uuid::Uuid;

use super::{Erasure, Error, Ledger};

/// Builds the ledger of erasures within this time, which must reach back to before the oldest backup was made.
///
/// Fails if the audit log of these days does not verify. `trusted`, checkpoints that a sink received,
/// also detects a database that was rolled back. Entities of a deleted tenant are deleted with it, and not listed.
pub async fn write(
    vault: &Vault,
    within: Duration,
    trusted: Option<TrustedCheckpoints>,
) -> Result<Ledger, Error> {
    let to = vault.clock.now().await?;
    let from = to.saturating_sub(within).unwrap_or(to);
    let tenants: HashMap<i32, Uuid> = tenants::list(vault)
        .await?
        .into_iter()
        .map(|tenant| (tenant.id.number, tenant.id.uuid))
        .collect();
    let deleted = audit::list_deleted(&vault.audit, from, to, trusted)
        .await
        .map_err(|error| match error {
            ListDeletedError::Unverified(verified) => Error::unverified(&verified),
            ListDeletedError::Storage(error) => Error::Storage(error),
        })?;
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
