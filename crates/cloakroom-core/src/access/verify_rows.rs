//! Verifies the MAC of every row that grants access.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Db;
use uuid::Uuid;

use super::row_mac::AuthenticatedRow as _;
use super::store::KeyPosition;
use super::{Error, Grants, Permission, store};
use crate::keys::ControlKey;

const PAGE: i64 = 500;

/// Result of verifying tenants, applications and keys.
#[derive(Debug, Default)]
pub struct RowReport {
    pub rows: usize,
    /// Tenants that are not deleted and whose row is authentic; only their other rows are verified.
    pub tenants: Vec<TenantId>,
    /// One sentence for each row that was modified outside the vault.
    pub altered: Vec<String>,
    /// Tenants that have applications with `application:create` or `application:update` but none with
    /// `application:grant`.
    pub without_administrator: Vec<Uuid>,
}

/// Verifies the row MAC of every tenant, application and API key.
pub async fn verify_rows(db: &Db, control: &ControlKey) -> Result<RowReport, Error> {
    let mut report = RowReport::default();
    let mut after = 0;
    loop {
        let page = store::list_tenants(db, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.id.number;
        for (tenant, mac) in page {
            let genuine = tenant.is_genuine(control, &mac);
            let genuine = report.record(genuine, "tenant", tenant.id.uuid);
            if genuine && tenant.deleted_at.is_none() {
                report.tenants.push(tenant.id);
            }
        }
    }
    for tenant in report.tenants.clone() {
        verify_applications(db, control, tenant, &mut report).await?;
        verify_keys(db, control, tenant, &mut report).await?;
    }
    Ok(report)
}

async fn verify_applications(
    db: &Db,
    control: &ControlKey,
    tenant: TenantId,
    report: &mut RowReport,
) -> Result<(), Error> {
    use Permission::{ApplicationCreate, ApplicationGrant, ApplicationUpdate};
    let (mut has_manager, mut has_administrator) = (false, false);
    let mut after = Uuid::nil();
    loop {
        let page = store::list_applications(db, tenant, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.id;
        for (application, mac) in page {
            let genuine = application.is_genuine(control, &mac);
            report.record(genuine, "application", application.id);
            let held = Grants::parse(&application.grants)
                .unwrap_or_default()
                .permissions;
            let manages = [ApplicationCreate, ApplicationUpdate];
            has_manager |= manages.into_iter().any(|it| held.contains(it));
            has_administrator |= held.contains(ApplicationGrant);
        }
    }
    if has_manager && !has_administrator {
        report.without_administrator.push(tenant.uuid);
    }
    Ok(())
}

async fn verify_keys(
    db: &Db,
    control: &ControlKey,
    tenant: TenantId,
    report: &mut RowReport,
) -> Result<(), Error> {
    let mut after = KeyPosition {
        application: Uuid::nil(),
        key: Uuid::nil(),
    };
    loop {
        let page = store::list_keys(db, tenant, after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after = KeyPosition {
            application: last.application,
            key: last.id,
        };
        for (key, mac) in page {
            report.record(key.is_genuine(control, &mac), "API key", key.id);
        }
    }
}

impl RowReport {
    fn record(&mut self, genuine: bool, what: &str, id: Uuid) -> bool {
        self.rows += 1;
        if !genuine {
            self.altered
                .push(format!("the {what} {id} was changed outside the vault"));
        }
        genuine
    }
}
