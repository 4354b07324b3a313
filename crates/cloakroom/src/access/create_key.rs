//! Making an application's keys.

use uuid::Uuid;

use super::authenticate::secret_mac;
use super::row_mac::{Authenticated as _, KeyRow};
use super::{ApiKey, Error, KeyParts, Tenant, store};
use crate::ids;
use crate::vault::Vault;

/// Enough to replace a key without a gap, and few enough to keep an eye on.
const KEYS_MAX: i64 = 3;

/// A new key, with the text that is shown only now.
pub struct CreatedKey {
    pub id: Uuid,
    pub key: ApiKey,
}

/// Makes a further key for an application; the ones it has keep working.
pub async fn create_key(
    vault: &Vault,
    tenant: &Tenant,
    application: Uuid,
) -> Result<CreatedKey, Error> {
    let control = vault.keys.control();
    let (application, application_mac) = store::find_application(&vault.db, tenant.id, application)
        .await?
        .ok_or(Error::NotFound("application"))?;
    if !application.is_genuine(control, &application_mac) {
        return Err(Error::Altered("application"));
    }
    if store::count_keys(&vault.db, tenant.id, application.id).await? >= KEYS_MAX {
        return Err(Error::TooManyKeys(KEYS_MAX));
    }
    let region = vault.config.vault.region.as_str();
    let key = ApiKey::generate(tenant.kind, region, application.kind);
    let parts = KeyParts::parse(key.expose()).ok_or(Error::Unauthorized)?;
    let row = KeyRow {
        lookup: parts.lookup.to_owned(),
        tenant_number: tenant.id.number,
        application: application.id,
        id: ids::new_uuid(),
        secret_mac: secret_mac(control, key.expose()).to_vec(),
        expires_at: None,
    };
    store::insert_key(&vault.db, &row, &row.row_mac(control)).await?;
    Ok(CreatedKey { id: row.id, key })
}
