//! Applying a ledger to a database that was restored, before a node starts.

use super::{Erasure, Error, Ledger};
use crate::access::Tenant;
use crate::applications::{self, Asker};
use crate::audit::EntityKind;
use crate::vault::Vault;
use crate::{tenants, tokens};

/// What became of a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// What the backup had brought back, and is gone again.
    pub erased: u64,
    /// What was not there.
    pub absent: u64,
}

/// Erases everything that a ledger names and the database has. Doing it again changes nothing.
pub async fn apply(
    vault: &Vault,
    ledger: &Ledger,
    on_progress: impl Fn(u64),
) -> Result<Applied, Error> {
    let mut applied = Applied::default();
    let tenants = tenants::list(vault).await?;
    for (done, erasure) in (1..).zip(&ledger.erasures) {
        let tenant = tenants.iter().find(|it| it.id.uuid == erasure.tenant);
        let is_erased = match tenant {
            Some(tenant) => erase(vault, tenant, erasure).await?,
            None => false,
        };
        match is_erased {
            true => applied.erased += 1,
            false => applied.absent += 1,
        }
        on_progress(done);
    }
    Ok(applied)
}

/// Whether there was anything to erase.
async fn erase(vault: &Vault, tenant: &Tenant, erasure: &Erasure) -> Result<bool, Error> {
    let asker = Asker::Operator(tenant);
    let id = erasure.id.as_str();
    let erased = match erasure.kind {
        EntityKind::Tenant => match tenants::delete_by_command(vault, tenant.id).await {
            Err(tenants::Error::NotFound) => return Ok(false),
            other => return Ok(other.map(|()| true)?),
        },
        EntityKind::Application => applications::delete(vault, asker, id).await,
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
