//! Finds proxies whose MAC a former version of the control key made.

use cloakroom_core::access::{Bucket, MacTable, OutdatedRows};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error};
use uuid::Uuid;

use super::store;

const PAGE: i64 = 200;

/// Examines all proxies of a tenant.
pub async fn examine_rows(
    db: &Db,
    tenant: TenantId,
    outdated: &mut OutdatedRows<'_>,
) -> Result<(), Error> {
    let mut after = Uuid::nil();
    loop {
        let page = store::list_after(db, tenant, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.row.id;
        for stored in &page {
            let place = (Bucket::of_proxy(stored.row.id), MacTable::Proxy);
            outdated.examine(place, (stored.row.id, &stored.row, &stored.row_mac));
        }
    }
}
