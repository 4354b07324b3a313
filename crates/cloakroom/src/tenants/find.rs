//! Finding tenants: one's own, and every one for the operator.

use std::time::Duration;

use uuid::Uuid;

use super::store::{self, Kept};
use super::{Error, Tenant};
use crate::access::{Authenticated as _, Permission, TenantQuotas, TenantSettings};
use crate::audit::{EntityKind, Entry, Operation, Unrecorded};
use crate::caller::Caller;
use crate::keys::ControlKey;
use crate::storage;
use crate::vault::Vault;

/// Tenants read at a time.
const PAGE: i64 = 500;

/// The caller's own tenant.
pub async fn find_own(vault: &Vault, caller: &Caller) -> Result<Tenant, Error> {
    caller.require_plain(Permission::TenantRead)?;
    let tenant = find(vault, caller.tenant.uuid).await?;
    record_read(vault, caller).await?;
    Ok(tenant)
}

pub(super) async fn record_read(vault: &Vault, caller: &Caller) -> Result<(), Unrecorded> {
    let id = caller.tenant.uuid;
    let entry = Entry::of(caller, Operation::Read, EntityKind::Tenant, id);
    vault.audit.note(vec![entry]).await
}

/// Finds a tenant by the id that everyone knows.
pub async fn find(vault: &Vault, id: Uuid) -> Result<Tenant, Error> {
    let kept = store::find(&vault.db, id).await?.ok_or(Error::NotFound)?;
    genuine(vault.keys.control(), kept).ok_or(Error::Altered)
}

/// Every genuine tenant, oldest first; `doctor` names the ones that were changed by SQL.
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
                .filter_map(|kept| genuine(vault.keys.control(), kept)),
        );
    }
}

/// A tenant whose row was written by the vault.
pub(super) fn genuine(control: &ControlKey, kept: Kept) -> Option<Tenant> {
    let Kept { row, row_mac, .. } = kept;
    if !row.is_genuine(control, &row_mac) {
        return None;
    }
    Some(Tenant {
        id: row.id,
        name: row.name,
        kind: row.kind,
        settings: TenantSettings::parse(&row.settings)?,
        quotas: TenantQuotas::parse(&row.quotas)?,
        created_by: kept.created_by,
        created_at: kept.created_at,
        modified_by: kept.modified_by,
        modified_at: kept.modified_at,
    })
}

/// The longest time for which any tenant may see its records.
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
            .filter_map(|kept| TenantQuotas::parse(&kept.row.quotas));
        let own = own.map(|quotas| quotas.or_default(&vault.config).log_retention);
        longest = own.fold(longest, Duration::max);
    }
}
