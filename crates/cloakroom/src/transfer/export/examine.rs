//! Finds requested exports whose MAC a former version of the control key made.

use cloakroom_core::access::{Bucket, MacTable, OutdatedRows};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error};

use super::store;

/// Examines all requested exports of a tenant.
pub async fn examine_rows(
    db: &Db,
    tenant: TenantId,
    outdated: &mut OutdatedRows<'_>,
) -> Result<(), Error> {
    for (request, row_mac) in store::list(db, tenant).await? {
        let place = (Bucket::RESOURCES, MacTable::ExportRequest);
        outdated.examine(place, (request.id, &request, &row_mac));
    }
    Ok(())
}
