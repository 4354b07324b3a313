//! Changing an application's name and grants.

use uuid::Uuid;

use super::application::{keep, name};
use super::find::{open, uuid};
use super::{Application, Asker, Error, settle_and_forget, store};
use crate::access::{ApplicationRow, Authenticated as _, NewGrants, Permission};
use crate::audit::{self, EntityKind, Operation};
use crate::idempotency::Reply;
use crate::storage::Transaction;
use crate::vault::Vault;

/// What an application is to be from now on. Its kind stays.
#[derive(Clone, Debug, Default)]
pub struct ApplicationChange {
    pub name: Option<String>,
    pub grants: NewGrants,
}

/// Replaces name, permissions and rules of an application.
pub async fn update(
    vault: &Vault,
    asker: Asker<'_>,
    id: &str,
    change: ApplicationChange,
    reply: &Reply<'_, Application>,
) -> Result<Application, Error> {
    asker.require(Permission::ApplicationUpdate)?;
    let (name, grants) = checked(change)?;
    let id = uuid(id)?;
    let recorded = audit::begin(vault).await?;
    let changed = write(vault, &recorded, asker, (id, name, grants)).await;
    let entries =
        |_: &Application| vec![asker.entry(Operation::Update, EntityKind::Application, id)];
    settle_and_forget(vault, recorded, changed, entries, reply).await
}

/// What does not depend on the application is checked before it is looked for.
fn checked(change: ApplicationChange) -> Result<(String, NewGrants), Error> {
    let mut broken = Vec::new();
    let name = keep(name(change.name), &mut broken);
    keep(change.grants.clone().checked(None), &mut broken);
    match name {
        Some(name) if broken.is_empty() => Ok((name, change.grants)),
        _ => Err(Error::Invalid(broken)),
    }
}

/// The row is locked and must be genuine: nobody gets a digest for what SQL wrote.
async fn write(
    vault: &Vault,
    transaction: &Transaction,
    asker: Asker<'_>,
    change: (Uuid, String, NewGrants),
) -> Result<Application, Error> {
    let (tenant, (id, name, grants)) = (asker.tenant(), change);
    let kept = store::lock(transaction, tenant, id).await?;
    let kept = kept.ok_or(Error::NotFound("application"))?;
    let keys = store::list_keys_of_locked(transaction, tenant, id).await?;
    let mut application = open(vault, tenant, &kept, &keys)?;
    let grants = grants.checked(Some(application.kind));
    application.grants = grants.map_err(Error::Invalid)?;
    application.name = name;
    let row = ApplicationRow {
        tenant_number: tenant.number,
        id,
        name: application.name.clone(),
        kind: application.kind,
        grants: application.grants.to_text(),
        expires_at: application.expires_at,
    };
    let row_mac = row.row_mac(vault.keys.control());
    application.modified_at = store::update(transaction, &row, asker.id(), &row_mac).await?;
    application.modified_by = asker.id();
    Ok(application)
}
