//! Removing the rows of deleted tenants. Nobody can open or find them any more; this frees what they
//! occupy.

use std::time::Duration;

use super::store::{self, REMOVALS};
use crate::access::Authenticated as _;
use crate::ids::TenantId;
use crate::storage::{self, Statement};
use crate::vault::Vault;

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;
/// What is left after these is for the next round.
const BATCHES_MAX: usize = 100;
/// Tenants that one round looks at.
const TENANTS_MAX: i64 = 100;

/// Removes what deleted tenants have left, and tells how many rows there were.
///
/// A tenant that has nothing left is looked at again until it has been deleted for `late`: a node that
/// did not know yet may have written something meanwhile.
pub async fn sweep(vault: &Vault, late: Duration) -> Result<u64, storage::Error> {
    let mut removed = 0;
    for kept in store::list_deleted(&vault.db, TENANTS_MAX).await? {
        // A mark that was made by SQL is no reason to destroy anything.
        if !kept.row.is_genuine(vault.keys.control(), &kept.row_mac) {
            tracing::error!(
                job = "sweep",
                error.kind = "altered_row",
                tenant.id = %kept.row.id.uuid,
                "a tenant was marked as deleted outside the vault; its rows stay"
            );
            continue;
        }
        let rows = sweep_tenant(vault, kept.row.id).await?;
        if rows == 0 {
            store::mark_swept(&vault.db, kept.row.id, late).await?;
        }
        removed += rows;
    }
    metrics::counter!("tenant_rows_swept_total").increment(removed);
    Ok(removed)
}

async fn sweep_tenant(vault: &Vault, tenant: TenantId) -> Result<u64, storage::Error> {
    let mut removed = 0;
    for removal in REMOVALS {
        removed += sweep_table(vault, tenant, removal).await?;
    }
    Ok(removed)
}

async fn sweep_table(
    vault: &Vault,
    tenant: TenantId,
    removal: &Statement,
) -> Result<u64, storage::Error> {
    let mut removed = 0;
    for _ in 0..BATCHES_MAX {
        let batch = store::remove(&vault.db, removal, tenant, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            break;
        }
    }
    Ok(removed)
}
