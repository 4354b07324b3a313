//! Reads the branding of a tenant.

use cloakroom_core::access::{self, AuthenticatedRow as _, Bucket, Permission, Stale};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use uuid::Uuid;

use super::store::{self, StoredBranding};
use super::{Branding, Error};

/// Finds the branding of the caller's tenant.
pub async fn find(vault: &Vault, caller: &Caller) -> Result<Branding, Error> {
    caller.require_plain(Permission::TenantRead)?;
    vault.keys.refresh_if_stale().await;
    let found = access::read_current(
        || store::find(&vault.db, caller.tenant),
        |stored| stored.verify_current(vault),
    );
    let branding = verify(vault, found.await?.ok_or(Error::NotFound)?)?;
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Read, EntityKind::Tenant, id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(branding)
}

/// Finds the branding for a page of a tenant. A row that was changed by SQL is not shown to cardholders.
pub async fn find_for_page(vault: &Vault, tenant: TenantId) -> Result<Option<Branding>, Error> {
    vault.keys.refresh_if_stale().await;
    let found = access::read_current(
        || store::find(&vault.db, tenant),
        |stored| stored.verify_current(vault),
    );
    ignore_altered(vault, found.await?)
}

/// Finds a branding by its id alone, which is all that the URLs of logo and colors contain.
pub async fn find_by_id(vault: &Vault, id: &str) -> Result<Option<Branding>, Error> {
    let Ok(id) = id.parse::<Uuid>() else {
        return Ok(None);
    };
    vault.keys.refresh_if_stale().await;
    let found = access::read_current(
        || store::find_by_id(&vault.db, id),
        |stored| stored.verify_current(vault),
    );
    ignore_altered(vault, found.await?)
}

impl StoredBranding {
    fn verify_current(&self, vault: &Vault) -> Result<(), Stale> {
        let (states, control) = (&vault.access_states, vault.keys.control());
        let tenant = self.row.tenant_number;
        states.verify(control, tenant, Bucket::RESOURCES, &self.bucket)
    }
}

fn ignore_altered(
    vault: &Vault,
    stored: Option<(StoredBranding, Result<(), Stale>)>,
) -> Result<Option<Branding>, Error> {
    let Some(stored) = stored else {
        return Ok(None);
    };
    match verify(vault, stored) {
        Ok(branding) => Ok(Some(branding)),
        Err(Error::Altered) => {
            catalog::ACCESS_ALTERED_ROWS.increment(1);
            tracing::error!(
                error.kind = "altered_row",
                "the branding of a tenant was changed outside the vault; pages are shown without it"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn verify(
    vault: &Vault,
    (stored, current): (StoredBranding, Result<(), Stale>),
) -> Result<Branding, Error> {
    let StoredBranding {
        row,
        row_mac,
        created_at,
        ..
    } = stored;
    match row.is_genuine(vault.keys.control(), &row_mac) && current.is_ok() {
        true => row.read(created_at),
        false => Err(Error::Altered),
    }
}
