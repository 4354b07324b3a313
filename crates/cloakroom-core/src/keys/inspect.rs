//! Verifies every stored key: it must unwrap, and match the check value of its row.

use cloakroom_crypto::{
    AuditAuthority, Control, Data, Fingerprinting, Index, Key, Purpose, Reply, Request, RootKek,
    SecurityCodeWrap, Signing, TenantKek, WrapContext, Wraps,
};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Db;

use super::store::{self, KeyRow};
use super::{Error, RootKeys, State};

/// Result of verifying keys.
#[derive(Debug, Default)]
pub struct KeyReport {
    pub keys: usize,
    /// One sentence for each key that is not usable.
    pub broken: Vec<String>,
}

/// Unwraps every usable key of the vault and of the given tenants.
pub async fn inspect(
    db: &Db,
    root: &RootKeys,
    environment: &str,
    tenants: &[TenantId],
) -> Result<KeyReport, Error> {
    let mut report = KeyReport::default();
    for row in store::list_system_keys(db).await?.rows {
        let context = WrapContext {
            environment,
            tenant: None,
            version: row.version,
        };
        if is_usable::<Control>(&row) {
            report
                .verify_below_root::<Control>(root, &context, &row, "the vault")
                .await;
        } else if is_usable::<AuditAuthority>(&row) {
            report
                .verify_below_root::<AuditAuthority>(root, &context, &row, "the vault")
                .await;
        } else if is_usable::<Signing>(&row) {
            report
                .verify_below_root::<Signing>(root, &context, &row, "the vault")
                .await;
        } else if is_usable::<SecurityCodeWrap>(&row) {
            report
                .verify_below_root::<SecurityCodeWrap>(root, &context, &row, "the vault")
                .await;
        }
    }
    for tenant in tenants {
        let owner = format!("tenant {}", tenant.uuid);
        let rows = store::list_tenant_keys(db, *tenant).await?.rows;
        let mut keks = Vec::new();
        for row in &rows {
            let context = context_of(environment, *tenant, row);
            if is_usable::<TenantKek>(row) {
                keks.extend(
                    report
                        .verify_below_root::<TenantKek>(root, &context, row, &owner)
                        .await,
                );
            }
        }
        report.require_active::<TenantKek>(&rows, &owner);
        report.require_active::<Data>(&rows, &owner);
        report.require_active::<Fingerprinting>(&rows, &owner);
        report.require_active::<Index>(&rows, &owner);
        report.require_active::<Reply>(&rows, &owner);
        report.require_active::<Request>(&rows, &owner);
        for row in &rows {
            let context = context_of(environment, *tenant, row);
            report.verify_below_tenant::<Data>(&keks, &context, row, &owner);
            report.verify_below_tenant::<Fingerprinting>(&keks, &context, row, &owner);
            report.verify_below_tenant::<Index>(&keks, &context, row, &owner);
            report.verify_below_tenant::<Reply>(&keks, &context, row, &owner);
            report.verify_below_tenant::<Request>(&keks, &context, row, &owner);
        }
    }
    Ok(report)
}

fn context_of<'a>(environment: &'a str, tenant: TenantId, row: &KeyRow) -> WrapContext<'a> {
    WrapContext {
        environment,
        tenant: Some(tenant.uuid.into_bytes()),
        version: row.version,
    }
}

fn is_usable<P: Purpose>(row: &KeyRow) -> bool {
    row.purpose == P::PURPOSE.number() && State::is_usable(row.state)
}

impl KeyReport {
    /// Without an active key of a purpose, nothing can be sealed under it.
    fn require_active<P: Purpose>(&mut self, rows: &[KeyRow], owner: &str) {
        let is_active = |row: &KeyRow| State::from_number(row.state) == Some(State::Active);
        if !rows.iter().any(|row| is_usable::<P>(row) && is_active(row)) {
            let name = P::PURPOSE.name();
            self.broken
                .push(format!("{owner} has no active {name} key"));
        }
    }

    async fn verify_below_root<P: Purpose>(
        &mut self,
        root: &RootKeys,
        context: &WrapContext<'_>,
        row: &KeyRow,
        owner: &str,
    ) -> Option<Key<P>>
    where
        RootKek: Wraps<P>,
    {
        let key = root.unwrap::<P>(&row.wrapped, context).await.ok();
        self.record(key, row, owner)
    }

    fn verify_below_tenant<P: Purpose>(
        &mut self,
        keks: &[Key<TenantKek>],
        context: &WrapContext<'_>,
        row: &KeyRow,
        owner: &str,
    ) where
        TenantKek: Wraps<P>,
    {
        if is_usable::<P>(row) {
            let key = keks
                .iter()
                .find_map(|kek| cloakroom_crypto::unwrap::<_, P>(kek, context, &row.wrapped).ok());
            self.record(key, row, owner);
        }
    }

    fn record<P: Purpose>(
        &mut self,
        key: Option<Key<P>>,
        row: &KeyRow,
        owner: &str,
    ) -> Option<Key<P>> {
        self.keys += 1;
        let intact = key.filter(|key| key.check_value().as_bytes()[..] == row.check_value);
        if intact.is_none() {
            self.broken.push(format!(
                "version {} of the {} key of {owner} cannot be used: another root key wrapped it, \
                 or it was altered",
                row.version,
                P::PURPOSE.name()
            ));
        }
        intact
    }
}
