//! Reads and lists applications.

use cloakroom_core::access::{ApplicationKind, Permission};
use cloakroom_core::audit::{AuditError, EntityKind, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::application::{Application, ApplicationKey};
use super::store::{self, StoredApplication, StoredKey};
use super::{Error, Requester};

/// Filter of a list; an empty list of values matches everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub ids: Option<Vec<Uuid>>,
    pub kinds: Option<Vec<ApplicationKind>>,
}

/// One page of applications, and the total count.
pub struct ApplicationPage {
    pub applications: Vec<Application>,
    pub total: u64,
}

/// Finds an application. Expired applications and those of other tenants are not found.
pub async fn find(vault: &Vault, requester: Requester<'_>, id: &str) -> Result<Application, Error> {
    requester.require(Permission::ApplicationRead)?;
    let found = find_by_id(vault, requester.tenant(), uuid(id)?).await?;
    let found = found.ok_or(Error::NotFound("application"))?;
    record_read(vault, requester, &found).await?;
    Ok(found)
}

/// Finds the caller's own application. Requires no permission.
pub async fn find_own(vault: &Vault, caller: &Caller) -> Result<Application, Error> {
    let found = find_by_id(vault, caller.tenant, caller.application).await?;
    let found = found.ok_or(Error::Unauthorized)?;
    record_read(vault, caller.into(), &found).await?;
    Ok(found)
}

async fn record_read(
    vault: &Vault,
    requester: Requester<'_>,
    found: &Application,
) -> Result<(), AuditError> {
    let entry = requester.entry(Operation::Read, EntityKind::Application, found.id);
    vault.audit.enqueue(vec![entry]).await
}

/// Lists applications, newest first.
///
/// A row that was modified by SQL fails its page instead of being omitted: clients must not act on an incomplete list.
pub async fn list(
    vault: &Vault,
    requester: Requester<'_>,
    filter: &Filter,
    page: NumberedPage,
) -> Result<ApplicationPage, Error> {
    requester.require(Permission::ApplicationRead)?;
    let tenant = requester.tenant();
    let (stored, total) = store::list(&vault.db, tenant, filter, page).await?;
    let ids: Vec<Uuid> = stored.iter().map(|stored| stored.id).collect();
    let keys = store::list_keys(&vault.db, tenant, &ids).await?;
    let applications = stored
        .iter()
        .map(|stored| open(vault, tenant, stored, &keys));
    Ok(ApplicationPage {
        applications: applications.collect::<Result<_, _>>()?,
        total: total.unsigned_abs(),
    })
}

async fn find_by_id(
    vault: &Vault,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Application>, Error> {
    let Some(stored) = store::find(&vault.db, tenant, id).await? else {
        return Ok(None);
    };
    let keys = store::list_keys(&vault.db, tenant, &[id]).await?;
    open(vault, tenant, &stored, &keys).map(Some)
}

/// Parses an id; an id that is not a UUID is not found.
pub(super) fn uuid(id: &str) -> Result<Uuid, Error> {
    id.parse().map_err(|_| Error::NotFound("application"))
}

/// Verifies a row and those of its keys among `keys`.
pub(super) fn open(
    vault: &Vault,
    tenant: TenantId,
    stored: &StoredApplication,
    keys: &[StoredKey],
) -> Result<Application, Error> {
    let control = vault.keys.control();
    let keys = keys.iter().filter(|key| key.application == stored.id);
    let keys = keys.map(|key| ApplicationKey::of(control, tenant, key));
    Application::of(control, tenant, stored, keys.collect::<Result<_, _>>()?)
}
