//! Creates tenants, for commands of the operator: the API cannot create one.

use cloakroom_core::access::{
    AuthenticatedRow as _, Bucket, NO_QUOTAS, TenantKind, TenantQuotas, TenantRow, TenantSettings,
    check_name,
};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::keys;
use cloakroom_core::vault::Vault;
use cloakroom_platform::config::Environment;
use cloakroom_platform::ids::{self, TenantId};

use super::{Error, Tenant, store};

/// Attempts to insert a tenant while others are created concurrently and take the same number.
const ATTEMPTS: usize = 5;

/// A requested tenant.
#[derive(Clone, Debug)]
pub struct NewTenant {
    pub name: String,
    pub kind: TenantKind,
    pub settings: TenantSettings,
}

/// Creates a tenant and its keys in one transaction.
pub async fn create(vault: &Vault, new: NewTenant) -> Result<Tenant, Error> {
    check_name(&new.name).map_err(|error| Error::Invalid(vec![error]))?;
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
        let (root, environment) = (vault.keys.root(), vault.keys.environment());
        let at = vault.clock.now().await?;
        let keys = keys::NewTenantKeys::create(root, environment, row.id, at).await?;
        let buckets = [Bucket::TENANT, Bucket::KEYS];
        let mut change = access_change::begin(vault, row.id, &buckets).await?;
        let Some(created_at) = store::insert(&change, &row, &row_mac).await? else {
            // Another tenant has the number now.
            change.roll_back().await;
            continue;
        };
        change.insert(Bucket::TENANT, &row_mac)?;
        let keys = keys.insert(&change, row.id).await?;
        change.change_keys(keys)?;
        let id = row.id.uuid;
        let entry = Entry::by_system(number, Operation::Create, EntityKind::Tenant, id);
        change.commit(&[entry]).await?;
        return Ok(Tenant {
            id: row.id,
            name: row.name,
            kind: row.kind,
            settings: new.settings,
            quotas: TenantQuotas::default(),
            // No application created it.
            created_by: None,
            created_at,
            modified_by: None,
            modified_at: None,
        });
    }
    Err(Error::Busy)
}
