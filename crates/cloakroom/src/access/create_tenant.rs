//! Making and finding tenants, for the operator.

use std::time::Duration;

use uuid::Uuid;

use super::application::check_name;
use super::row_mac::{Authenticated as _, NO_QUOTAS, TenantRow};
use super::{Error, NewTenant, Tenant, TenantKind, TenantQuotas, TenantSettings, store};
use crate::config::Environment;
use crate::ids::{self, TenantId};
use crate::keys::{self, ControlKey};
use crate::storage;
use crate::vault::Vault;

/// How many times to try when tenants are made at the same moment.
const ATTEMPTS: usize = 5;

/// Makes a tenant and its keys, together or not at all.
pub async fn create_tenant(vault: &Vault, new: NewTenant) -> Result<Tenant, Error> {
    check_name(&new.name)?;
    let environment = vault.config.vault.environment;
    if new.kind == TenantKind::Production && environment == Environment::Test {
        return Err(Error::ProductionTenantInTest);
    }
    for _ in 0..ATTEMPTS {
        let number = store::next_tenant_number(&vault.db).await?;
        let row = TenantRow {
            id: TenantId {
                number,
                uuid: ids::new_uuid(),
            },
            name: new.name.clone(),
            kind: new.kind,
            settings: new.settings.to_text(),
            quotas: NO_QUOTAS.to_owned(),
        };
        let row_mac = row.row_mac(vault.keys.control());
        let transaction = vault.db.begin().await?;
        let Some(created_at) = store::insert_tenant(&transaction, &row, &row_mac).await? else {
            continue;
        };
        let (root, environment) = (vault.keys.root(), vault.keys.environment());
        keys::create_tenant_keys(&transaction, root, environment, row.id).await?;
        transaction.commit().await?;
        return Ok(Tenant {
            id: row.id,
            name: row.name,
            kind: row.kind,
            settings: new.settings,
            created_at,
        });
    }
    Err(Error::Busy)
}

/// Finds a tenant by the id that everyone knows.
pub async fn find_tenant(vault: &Vault, id: Uuid) -> Result<Tenant, Error> {
    let kept = store::find_tenant(&vault.db, id)
        .await?
        .ok_or(Error::NotFound("tenant"))?;
    genuine(vault.keys.control(), kept).ok_or(Error::Altered("tenant"))
}

/// Every genuine tenant, oldest first; `doctor` names the ones that were changed by SQL.
pub async fn list_tenants(vault: &Vault) -> Result<Vec<Tenant>, Error> {
    const PAGE: i64 = 500;
    let mut tenants = Vec::new();
    let mut after = 0;
    loop {
        let page = store::list_tenants(&vault.db, after, PAGE).await?;
        let Some((last, ..)) = page.last() else {
            return Ok(tenants);
        };
        after = last.id.number;
        tenants.extend(
            page.into_iter()
                .filter_map(|kept| genuine(vault.keys.control(), kept)),
        );
    }
}

fn genuine(control: &ControlKey, kept: store::KeptTenant) -> Option<Tenant> {
    let (row, row_mac, created_at) = kept;
    if !row.is_genuine(control, &row_mac) {
        return None;
    }
    Some(Tenant {
        id: row.id,
        name: row.name,
        kind: row.kind,
        settings: TenantSettings::parse(&row.settings)?,
        created_at,
    })
}

/// The longest time for which any tenant may see its records.
pub async fn longest_log_retention(vault: &Vault) -> Result<Duration, storage::Error> {
    const PAGE: i64 = 500;
    let mut longest = vault.config.quotas.log_retention;
    let mut after = 0;
    loop {
        let page = store::list_tenants(&vault.db, after, PAGE).await?;
        let Some((last, ..)) = page.last() else {
            return Ok(longest);
        };
        after = last.id.number;
        let own = page
            .iter()
            .filter_map(|(tenant, ..)| TenantQuotas::parse(&tenant.quotas));
        let own = own.map(|quotas| quotas.or_default(&vault.config).log_retention);
        longest = own.fold(longest, Duration::max);
    }
}
