//! Finding applications: one, the caller's own, and pages of them.

use uuid::Uuid;

use super::application::{Application, ApplicationKey};
use super::store::{self, KeptApplication, KeptKey};
use super::{Asker, Error};
use crate::access::{ApplicationKind, Permission};
use crate::api::NumberedPage;
use crate::audit::{EntityKind, Operation, Unrecorded};
use crate::caller::Caller;
use crate::ids::TenantId;
use crate::vault::Vault;

/// Which applications are asked for; without an entry, all of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub ids: Option<Vec<Uuid>>,
    pub kinds: Option<Vec<ApplicationKind>>,
}

/// One page, and how many applications there are on all pages.
pub struct Listed {
    pub applications: Vec<Application>,
    pub total: u64,
}

/// Finds an application; expired ones and those of other tenants do not exist.
pub async fn find(vault: &Vault, asker: Asker<'_>, id: &str) -> Result<Application, Error> {
    asker.require(Permission::ApplicationRead)?;
    let found = find_by_id(vault, asker.tenant(), uuid(id)?).await?;
    let found = found.ok_or(Error::NotFound("application"))?;
    record_read(vault, asker, &found).await?;
    Ok(found)
}

/// Finds the application that asks. Every key may.
pub async fn find_own(vault: &Vault, caller: &Caller) -> Result<Application, Error> {
    let found = find_by_id(vault, caller.tenant, caller.application).await?;
    let found = found.ok_or(Error::Unauthorized)?;
    record_read(vault, caller.into(), &found).await?;
    Ok(found)
}

async fn record_read(
    vault: &Vault,
    asker: Asker<'_>,
    found: &Application,
) -> Result<(), Unrecorded> {
    let entry = asker.entry(Operation::Read, EntityKind::Application, found.id);
    vault.audit.note(vec![entry]).await
}

/// Lists applications, the newest first.
///
/// A row that was changed by SQL fails its page instead of being left out: who acts on a list must
/// not act on less than there is.
pub async fn list(
    vault: &Vault,
    asker: Asker<'_>,
    filter: &Filter,
    page: NumberedPage,
) -> Result<Listed, Error> {
    asker.require(Permission::ApplicationRead)?;
    let tenant = asker.tenant();
    let (kept, total) = store::list(&vault.db, tenant, filter, page).await?;
    let ids: Vec<Uuid> = kept.iter().map(|kept| kept.id).collect();
    let keys = store::list_keys(&vault.db, tenant, &ids).await?;
    let applications = kept.iter().map(|kept| open(vault, tenant, kept, &keys));
    Ok(Listed {
        applications: applications.collect::<Result<_, _>>()?,
        total: total.unsigned_abs(),
    })
}

async fn find_by_id(
    vault: &Vault,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Application>, Error> {
    let Some(kept) = store::find(&vault.db, tenant, id).await? else {
        return Ok(None);
    };
    let keys = store::list_keys(&vault.db, tenant, &[id]).await?;
    open(vault, tenant, &kept, &keys).map(Some)
}

/// An id that is no UUID is nobody's.
pub(super) fn uuid(id: &str) -> Result<Uuid, Error> {
    id.parse().map_err(|_| Error::NotFound("application"))
}

/// Checks a row, and those of its keys among the given ones.
pub(super) fn open(
    vault: &Vault,
    tenant: TenantId,
    kept: &KeptApplication,
    keys: &[KeptKey],
) -> Result<Application, Error> {
    let control = vault.keys.control();
    let keys = keys.iter().filter(|key| key.application == kept.id);
    let keys = keys.map(|key| ApplicationKey::of(control, tenant, key));
    Application::of(control, tenant, kept, keys.collect::<Result<_, _>>()?)
}
