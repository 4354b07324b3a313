//! Making tenants, for the operator.

use super::{Error, Tenant, store};
use crate::access::{
    Authenticated as _, NO_QUOTAS, TenantKind, TenantQuotas, TenantRow, TenantSettings, check_name,
};
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::config::Environment;
use crate::ids::{self, TenantId};
use crate::keys;
use crate::vault::Vault;

/// How many times to try when tenants are made at the same moment.
const ATTEMPTS: usize = 5;

/// A tenant that is asked for.
#[derive(Clone, Debug)]
pub struct NewTenant {
    pub name: String,
    pub kind: TenantKind,
    pub settings: TenantSettings,
}

/// Makes a tenant and its keys, together or not at all.
pub async fn create(vault: &Vault, new: NewTenant) -> Result<Tenant, Error> {
    check_name(&new.name).map_err(|broken| Error::Invalid(vec![broken]))?;
    let environment = vault.config.vault.environment;
    if new.kind == TenantKind::Production && environment == Environment::Test {
        return Err(Error::ProductionTenantInTest);
    }
    for _ in 0..ATTEMPTS {
        let number = store::next_number(&vault.db).await?;
        let row = TenantRow {
            id: TenantId {
                number,
                uuid: ids::new_uuid(),
            },
            name: new.name.clone(),
            kind: new.kind,
            settings: new.settings.to_text(),
            quotas: NO_QUOTAS.to_owned(),
            deleted_at: None,
        };
        let row_mac = row.row_mac(vault.keys.control());
        let recorded = audit::begin(vault).await?;
        let Some(created_at) = store::insert(&recorded, &row, &row_mac).await? else {
            recorded.roll_back().await;
            continue;
        };
        let (root, environment) = (vault.keys.root(), vault.keys.environment());
        keys::create_tenant_keys(&recorded, root, environment, row.id).await?;
        let id = row.id.uuid;
        let entry = Entry::by_system(number, Operation::Create, EntityKind::Tenant, id);
        recorded.commit(&[entry]).await?;
        return Ok(Tenant {
            id: row.id,
            name: row.name,
            kind: row.kind,
            settings: new.settings,
            quotas: TenantQuotas::default(),
            created_by: None,
            created_at,
            modified_by: None,
            modified_at: None,
        });
    }
    Err(Error::Busy)
}
