//! Reads the branding of a tenant.

use cloakroom_core::access::{AuthenticatedRow as _, Permission};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::store::{self, StoredBranding};
use super::{Branding, Error};

/// Finds the branding of the caller's tenant.
pub async fn find(vault: &Vault, caller: &Caller) -> Result<Branding, Error> {
    caller.require_plain(Permission::TenantRead)?;
    let stored = store::find(&vault.db, caller.tenant).await?;
    let branding = verify(vault, stored.ok_or(Error::NotFound)?)?;
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Read, EntityKind::Tenant, id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(branding)
}

/// Finds the branding for a page of a tenant. A row that was changed by SQL is not shown to cardholders.
pub async fn find_for_page(vault: &Vault, tenant: TenantId) -> Result<Option<Branding>, Error> {
    ignore_altered(vault, store::find(&vault.db, tenant).await?)
}

/// Finds a branding by its id alone, which is all that the URLs of logo and colors contain.
pub async fn find_by_id(vault: &Vault, id: &str) -> Result<Option<Branding>, Error> {
    let Ok(id) = id.parse::<Uuid>() else {
        return Ok(None);
    };
    ignore_altered(vault, store::find_by_id(&vault.db, id).await?)
}

fn ignore_altered(
    vault: &Vault,
    stored: Option<StoredBranding>,
) -> Result<Option<Branding>, Error> {
    let Some(stored) = stored else {
        return Ok(None);
    };
    match verify(vault, stored) {
        Ok(branding) => Ok(Some(branding)),
        Err(Error::Altered) => {
            metrics::counter!("access_altered_rows_total").increment(1);
            tracing::error!(
                error.kind = "altered_row",
                "the branding of a tenant was changed outside the vault; pages are shown without it"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn verify(vault: &Vault, stored: StoredBranding) -> Result<Branding, Error> {
    let StoredBranding {
        row,
        row_mac,
        created_at,
    } = stored;
    match row.is_genuine(vault.keys.control(), &row_mac) {
        true => row.read(created_at),
        false => Err(Error::Altered),
    }
}
