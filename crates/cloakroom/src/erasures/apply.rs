//! Applies a ledger to a restored database, before a node starts.

use cloakroom_core::access::Tenant;
use cloakroom_core::audit::EntityKind;
use cloakroom_management::applications::{self, Requester};
use cloakroom_management::tenants;
use cloakroom_tokens::tokens;
use cloakroom_tokens::tokens::TokenVault;

use super::plan::plan;
use super::{Erasure, Error, Ledger, Limits};

/// Result of applying a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Entities that the backup had restored and that were deleted again.
    pub erased: u64,
    /// Entities that did not exist.
    pub absent: u64,
}

/// Deletes every entity that a ledger lists and the database contains; fails without deleting anything if that exceeds
/// `limits`. Idempotent.
pub async fn apply(
    vault: &TokenVault,
    ledger: &Ledger,
    limits: &Limits,
    on_progress: impl Fn(u64),
) -> Result<Applied, Error> {
    let plan = plan(vault, ledger).await?;
    limits.check(&plan.counts)?;
    let mut applied = Applied {
        erased: 0,
        absent: plan.absent,
    };
    for (done, (tenant, erasure)) in (1..).zip(&plan.present) {
        match erase(vault, tenant, erasure).await? {
            true => applied.erased += 1,
            false => applied.absent += 1,
        }
        on_progress(done);
    }
    Ok(applied)
}

/// Deletes an entity; false if it does not exist.
async fn erase(vault: &TokenVault, tenant: &Tenant, erasure: &Erasure) -> Result<bool, Error> {
    let requester = Requester::Operator(tenant);
    let id = erasure.id.as_str();
    let erased = match erasure.kind {
        EntityKind::Tenant => match tenants::delete_as_operator(vault, tenant.id).await {
            Err(tenants::Error::NotFound) => return Ok(false),
            other => return Ok(other.map(|()| true)?),
        },
        EntityKind::Application => applications::delete(vault, requester, id).await,
        EntityKind::ApplicationKey => applications::delete_key_by_id(vault, tenant, id).await,
        EntityKind::Token | EntityKind::Card | EntityKind::Bank => {
            return Ok(tokens::erase(vault, tenant.id, id, erasure.at).await?);
        }
        _ => return Ok(false),
    };
    match erased {
        Ok(()) => Ok(true),
        Err(applications::Error::NotFound(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
