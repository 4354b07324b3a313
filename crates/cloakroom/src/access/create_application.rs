//! Making applications.

use super::application::check_name;
use super::row_mac::{ApplicationRow, Authenticated as _};
use super::{Application, Error, NewApplication, store};
use crate::ids::{self, TenantId};
use crate::vault::Vault;

/// Makes an application whose grants fit its kind.
pub async fn create_application(
    vault: &Vault,
    tenant: TenantId,
    new: NewApplication,
) -> Result<Application, Error> {
    check_name(&new.name)?;
    let grants = new.grants.checked(new.kind)?;
    let row = ApplicationRow {
        tenant_number: tenant.number,
        id: ids::new_uuid(),
        name: new.name,
        kind: new.kind,
        grants: serde_json::to_string(&grants)
            .map_err(|_| Error::invalid("rules", "must be expressible as JSON"))?,
        expires_at: None,
    };
    store::insert_application(&vault.db, &row, &row.row_mac(vault.keys.control())).await?;
    Ok(Application {
        id: row.id,
        name: row.name,
        kind: row.kind,
        grants,
    })
}
