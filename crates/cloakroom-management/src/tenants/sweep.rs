//! Deletes the rows of deleted tenants. They are already unreadable and unreachable; this reclaims their space.

use std::time::Duration;

use cloakroom_core::access::AuthenticatedRow as _;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Statement};
use cloakroom_platform::telemetry::catalog;

use super::store::{self, REMOVALS};

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;
/// The next run continues after this many batches.
const BATCHES_MAX: usize = 100;
/// Deleted tenants that one run processes.
const TENANTS_MAX: i64 = 100;

/// Deletes the remaining rows of deleted tenants; returns the number of rows.
///
/// A tenant without rows is checked again until it has been deleted for `late`: a node whose cache was stale may have
/// written more rows.
pub async fn sweep(vault: &Vault, late: Duration) -> Result<u64, storage::Error> {
    let mut removed = 0;
    for stored in store::list_deleted(&vault.db, TENANTS_MAX).await? {
        // A mark set by SQL must not destroy data.
        if !stored.row.is_genuine(vault.keys.control(), &stored.row_mac) {
            tracing::error!(
                job = "sweep",
                error.kind = "altered_row",
                tenant.id = %stored.row.id.uuid,
                "a tenant was marked as deleted outside the vault; its rows are not deleted"
            );
            continue;
        }
        let rows = sweep_tenant(vault, stored.row.id).await?;
        if rows == 0 {
            store::mark_swept(&vault.db, stored.row.id, late).await?;
        }
        removed += rows;
    }
    catalog::TENANT_ROWS_SWEPT.increment(removed);
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
