//! Computes the MACs of rows that grant access again, after the control key was replaced.
//!
//! Each module lists the rows of its tables ([`OutdatedRows::examine`]); `access_change::renew` writes their MACs and the
//! states of their buckets. Contents and times of the rows do not change, and a row that does not verify keeps its MAC.

use std::collections::BTreeMap;
use std::fmt::Display;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error};
use cloakroom_platform::telemetry::catalog;
use uuid::Uuid;

use super::Bucket;
use super::row_mac::{AuthenticatedRow, TenantRow};
use super::states::{MacTable, list_orphans};
use super::store::{self, KeyPosition};
use crate::keys::{ControlKey, Renewal, StoredMac};

const PAGE: i64 = 500;

/// Rows by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenewedRows {
    pub scanned: u64,
    pub renewed: u64,
    /// Rows that do not verify, and those of buckets that are not the current ones.
    pub altered: u64,
}

impl RenewedRows {
    pub fn add(&mut self, other: Self) {
        self.scanned += other.scanned;
        self.renewed += other.renewed;
        self.altered += other.altered;
    }

    /// Counts a row of a table. Returns its MAC by the active version of the control key if a former one made it.
    pub fn examine(
        &mut self,
        (table, id): (&'static str, &dyn Display),
        renewal: Renewal,
    ) -> Option<StoredMac> {
        self.scanned += 1;
        match renewal {
            Renewal::Current => None,
            Renewal::Renewed(renewed) => Some(renewed),
            Renewal::Altered => {
                self.altered += 1;
                report_altered(table, id);
                None
            }
        }
    }
}

/// MACs of a tenant's rows by a former version of the control key, with those by the active one.
pub struct OutdatedRows<'a> {
    control: &'a ControlKey,
    pub(crate) by_place: BTreeMap<(Bucket, MacTable), OutdatedMacs>,
    pub(crate) counts: RenewedRows,
}

/// Ids of rows, with the MAC that was verified and the one that replaces it.
#[derive(Default)]
pub(crate) struct OutdatedMacs {
    pub ids: Vec<Uuid>,
    pub before: Vec<Vec<u8>>,
    pub after: Vec<Vec<u8>>,
}

impl<'a> OutdatedRows<'a> {
    pub fn new(control: &'a ControlKey) -> Self {
        Self {
            control,
            by_place: BTreeMap::new(),
            counts: RenewedRows::default(),
        }
    }

    /// Verifies a row and notes its MAC if it is outdated.
    pub fn examine<R: AuthenticatedRow>(
        &mut self,
        place: (Bucket, MacTable),
        (id, row, row_mac): (Uuid, &R, &[u8]),
    ) {
        let renewal = row.renew(self.control, row_mac);
        if let Some(renewed) = self.counts.examine((place.1.name(), &id), renewal) {
            let macs = self.by_place.entry(place).or_default();
            macs.ids.push(id);
            macs.before.push(row_mac.to_vec());
            macs.after.push(renewed.to_vec());
        }
    }
}

/// Logs a row that keeps the former control key alive, so that an operator finds it.
fn report_altered(table: &'static str, id: &dyn Display) {
    catalog::ACCESS_ALTERED_ROWS.increment(1);
    tracing::error!(
        error.kind = "altered_row",
        table,
        row = %id,
        "a row was changed outside the vault; the former control key cannot be destroyed before it is restored or deleted"
    );
}

/// Tenants after a number, in order, whether deleted or not.
pub async fn list_tenants(db: &Db, after: i32) -> Result<Vec<(TenantRow, Vec<u8>)>, Error> {
    store::list_tenants(db, after, PAGE).await
}

/// Whether a tenant exists and is not deleted.
pub async fn is_tenant(db: &Db, tenant: TenantId) -> Result<bool, Error> {
    Ok(store::find_tenant(db, tenant.number).await?.is_some())
}

/// Reports states of tenants whose own row was deleted by SQL, and counts the tenants.
pub async fn report_orphans(db: &Db) -> Result<u64, Error> {
    let tenants = list_orphans(db).await?;
    for tenant in &tenants {
        report_altered("access_state", tenant);
    }
    Ok(tenants.len() as u64)
}

/// Examines the tenant's own row, its applications and their keys.
pub async fn examine_rows(
    db: &Db,
    (tenant, row_mac): (&TenantRow, &[u8]),
    outdated: &mut OutdatedRows<'_>,
) -> Result<(), Error> {
    let id = tenant.id;
    let place = (Bucket::TENANT, MacTable::Tenant);
    outdated.examine(place, (id.uuid, tenant, row_mac));
    if tenant.deleted_at.is_some() {
        return Ok(());
    }
    let mut after = Uuid::nil();
    loop {
        let page = store::list_applications(db, id, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.id;
        for (row, row_mac) in &page {
            let place = (Bucket::of_application(row.id), MacTable::Application);
            outdated.examine(place, (row.id, row, row_mac));
        }
    }
    let mut after = KeyPosition {
        application: Uuid::nil(),
        key: Uuid::nil(),
    };
    loop {
        let page = store::list_keys(db, id, after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after = KeyPosition {
            application: last.application,
            key: last.id,
        };
        for (row, row_mac) in &page {
            let place = (
                Bucket::of_application(row.application),
                MacTable::ApplicationKey,
            );
            outdated.examine(place, (row.id, row, row_mac));
        }
    }
}
