//! Computes the MACs of all rows again after the control key was replaced, and scans for those of the former one.
//!
//! Tables belong to the vault, so one rotation covers all tenants. Positions are not stored: rows that have
//! current MACs are skipped quickly, and SQL cannot shorten the scan.

use std::time::Duration;

use cloakroom_core::access::{self, OutdatedRows, RenewedRows};
use cloakroom_core::access_change;
use cloakroom_core::keys::VAULT;
use cloakroom_management::{branding, sessions, tenants};
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use cloakroom_proxy::proxies;
use cloakroom_threeds::networks;
use cloakroom_tokens::bins;
use cloakroom_webhooks::{deliveries, webhooks};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::advance::{Run, Step};
use super::digest_scan::Scan;
use super::store::{self, Counts};
use super::{Error, Phase, Rotation};
use crate::node::Node;
use crate::transfer::{export, import};

/// Tables in the order in which they are rewritten; `access_state` stands for all rows that have one.
pub(super) const STEPS: [&str; 5] = [
    "access_state",
    "session",
    "import_batch",
    "webhook_delivery",
    "bin_table, card_range_table",
];
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Events that one statement of the scan counts.
const PAGE: i64 = 20_000;

/// Renews the MACs of one step, and saves the progress.
pub(super) async fn renew(node: &Node, rotation: &Rotation, run: &mut Run) -> Result<Step, Error> {
    if node.keys.control().active_version() != rotation.to {
        // This node does not write under the new version yet.
        node.keys.evict(VAULT).await;
        return Ok(Step::Waiting);
    }
    let step = usize::try_from(rotation.step).ok();
    let mut pages = Pages::new(run);
    let is_complete = match step.and_then(|step| STEPS.get(step)).copied() {
        Some("access_state") => renew_access(node, &mut pages).await?,
        Some("session") => {
            let mut after = String::new();
            while let Some(rows) = sessions::renew_macs(node, &mut after).await? {
                if !pages.finish(node, rows).await? {
                    return Ok(Step::Waiting);
                }
            }
            true
        }
        Some("import_batch") => {
            let mut after = (0, Uuid::nil(), 0);
            while let Some(rows) = import::renew_macs(node, &mut after).await? {
                if !pages.finish(node, rows).await? {
                    return Ok(Step::Waiting);
                }
            }
            true
        }
        Some("webhook_delivery") => {
            let mut after = deliveries::RenewedUntil::default();
            while let Some(rows) = deliveries::renew_macs(node, &mut after).await? {
                if !pages.finish(node, rows).await? {
                    return Ok(Step::Waiting);
                }
            }
            true
        }
        Some(_) => {
            let mut rows = bins::renew_macs(node).await?;
            rows.add(networks::renew_macs(node).await?);
            pages.finish(node, rows).await?
        }
        None => {
            failpoint("rotation.rewritten")?;
            store::move_to(&node.db, rotation, Phase::Proving).await?;
            return Ok(Step::Changed);
        }
    };
    if !is_complete {
        return Ok(Step::Waiting);
    }
    failpoint("rotation.page_written")?;
    let (step, position) = (rotation.step + 1, Uuid::nil());
    let rows = pages.rows;
    let counts = Counts {
        scanned: rows.scanned,
        rewritten: rows.renewed,
        unreadable: rows.altered,
    };
    store::save_progress(&node.db, rotation, (step, position), counts).await?;
    catalog::KEY_ROTATION_ROWS.increment(rows.renewed);
    Ok(Step::Page { step, position })
}

/// The pages of one step.
struct Pages<'a> {
    run: &'a mut Run,
    started_at: Instant,
    rows: RenewedRows,
}

impl<'a> Pages<'a> {
    fn new(run: &'a mut Run) -> Self {
        Self {
            run,
            started_at: Instant::now(),
            rows: RenewedRows::default(),
        }
    }

    /// Counts a page, pauses, and renews the lease; false if another node has it.
    async fn finish(&mut self, node: &Node, rows: RenewedRows) -> Result<bool, Error> {
        self.rows.add(rows);
        // Leaves half of the database to requests.
        sleep(self.started_at.elapsed().min(PAUSE_MAX)).await;
        self.started_at = Instant::now();
        self.run.renew(node).await
    }
}

/// Renews the keyset of the vault, then all rows of each tenant that have an access state.
async fn renew_access(node: &Node, pages: &mut Pages<'_>) -> Result<bool, Error> {
    let outdated = OutdatedRows::new(node.keys.control());
    let rows = access_change::renew(node, VAULT, false, outdated).await?;
    if !pages.finish(node, rows).await? {
        return Ok(false);
    }
    let mut after = 0;
    loop {
        let page = access::list_tenants(&node.db, after).await?;
        let Some((last, _)) = page.last() else {
            pages.rows.altered += access::report_orphans(&node.db).await?;
            return Ok(true);
        };
        after = last.id.number;
        for (tenant, row_mac) in page {
            // It may have been deleted since the page was read.
            let is_deleted = !access::is_tenant(&node.db, tenant.id).await?;
            let mut outdated = OutdatedRows::new(node.keys.control());
            access::examine_rows(&node.db, (&tenant, &row_mac), &mut outdated).await?;
            if !is_deleted {
                examine_resources(node, tenant.id, &mut outdated).await?;
            }
            let rows = access_change::renew(node, tenant.id, is_deleted, outdated).await?;
            if !pages.finish(node, rows).await? {
                return Ok(false);
            }
        }
    }
}

/// Examines the rows of a tenant that belong to other modules than `access`.
async fn examine_resources(
    node: &Node,
    tenant: TenantId,
    outdated: &mut OutdatedRows<'_>,
) -> Result<(), Error> {
    let db = &node.db;
    tenants::examine_rows(db, tenant, outdated).await?;
    branding::examine_rows(db, tenant, outdated).await?;
    webhooks::examine_rows(db, tenant, outdated).await?;
    export::examine_rows(db, tenant, outdated).await?;
    Ok(proxies::examine_rows(db, tenant, outdated).await?)
}

/// Rows of each table, and how many of all have a MAC by the former version. `None` if this node has lost the lease.
pub(super) async fn scan(node: &Node, rotation: &Rotation, run: &mut Run) -> Result<Scan, Error> {
    let (mut scanned, mut found) = store::count_macs(&node.db, rotation.from).await?;
    let (mut events, mut after) = (0, deliveries::RenewedUntil::default());
    let version = rotation.from;
    while let Some(page) = store::count_events(&node.db, version, &mut after, PAGE).await? {
        events += page.0;
        found += page.1;
        if !run.renew(node).await? {
            return Ok(None);
        }
    }
    scanned.push(("webhook_delivery", events));
    Ok(Some((scanned, found)))
}
