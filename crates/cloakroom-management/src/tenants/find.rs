//! Reads and lists tenants.

use std::time::Duration;

use cloakroom_core::access::{AuthenticatedRow as _, Permission, TenantQuotas, TenantSettings};
use cloakroom_core::audit::{AuditError, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::ControlKey;
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::store::{self, StoredTenant};
use super::{Error, Tenant};

/// Tenants read by one query.
const PAGE: i64 = 500;

/// Finds the caller's own tenant.
pub async fn find_own(vault: &Vault, caller: &Caller) -> Result<Tenant, Error> {
    caller.require_plain(Permission::TenantRead)?;
    let tenant = find(vault, caller.tenant.uuid).await?;
    record_read(vault, caller).await?;
    Ok(tenant)
}

pub(super) async fn record_read(vault: &Vault, caller: &Caller) -> Result<(), AuditError> {
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Read, EntityKind::Tenant, id);
    vault.audit.enqueue(vec![entry]).await
}

/// Finds a tenant by its public id.
pub async fn find(vault: &Vault, id: Uuid) -> Result<Tenant, Error> {
    let stored = store::find(&vault.db, id).await?.ok_or(Error::NotFound)?;
    verified(vault.keys.control(), stored).ok_or(Error::Altered)
}

/// Lists all tenants whose row is authentic, oldest first; `doctor` reports those modified by SQL.
pub async fn list(vault: &Vault) -> Result<Vec<Tenant>, Error> {
    let mut tenants = Vec::new();
    let mut after = 0;
    loop {
        let page = store::list(&vault.db, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(tenants);
        };
        after = last.row.id.number;
        tenants.extend(
            page.into_iter()
                .filter_map(|stored| verified(vault.keys.control(), stored)),
        );
    }
}

/// Converts a stored tenant; `None` if its MAC does not verify or it cannot be parsed.
pub(super) fn verified(control: &ControlKey, stored: StoredTenant) -> Option<Tenant> {
    let StoredTenant { row, row_mac, .. } = stored;
    if !row.is_genuine(control, &row_mac) {
        return None;
    }
    Some(Tenant {
        id: row.id,
        name: row.name,
        kind: row.kind,
        settings: TenantSettings::parse(&row.settings)?,
        quotas: TenantQuotas::parse(&row.quotas)?,
        created_by: stored.created_by,
        created_at: stored.created_at,
        modified_by: stored.modified_by,
        modified_at: stored.modified_at,
    })
}

/// The longest log retention of any tenant.
pub async fn longest_log_retention(vault: &Vault) -> Result<Duration, storage::Error> {
    let mut longest = vault.config.quotas.log_retention;
    let mut after = 0;
    loop {
        let page = store::list(&vault.db, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(longest);
        };
        after = last.row.id.number;
        let own = page
            .iter()
            .filter_map(|stored| TenantQuotas::parse(&stored.row.quotas));
        let own = own.map(|quotas| quotas.or_default(&vault.config).log_retention);
        longest = own.fold(longest, Duration::max);
    }
}
