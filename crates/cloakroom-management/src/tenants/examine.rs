//! Finds a pending deletion whose MAC a former version of the control key made.

use cloakroom_core::access::{Bucket, MacTable, OutdatedRows};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error};

use super::store;

/// Examines the pending deletion of a tenant. The tenant's own row is examined by `access`.
pub async fn examine_rows(
    db: &Db,
    tenant: TenantId,
    outdated: &mut OutdatedRows<'_>,
) -> Result<(), Error> {
    if let Some((deletion, row_mac)) = store::find_deletion(db, tenant).await? {
        let place = (Bucket::RESOURCES, MacTable::TenantDeletion);
        outdated.examine(place, (deletion.requested_by, &deletion, &row_mac));
    }
    Ok(())
}
