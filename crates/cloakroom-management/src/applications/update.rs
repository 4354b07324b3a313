//! Updates an application's name and grants.

use cloakroom_core::access::{
    ApplicationRow, AuthenticatedRow as _, Bucket, NewGrants, Permission,
};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Operation};
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use uuid::Uuid;

use super::application::{collect_errors, name};
use super::find::{open, uuid};
use super::{Application, Error, Requester, commit_and_invalidate, store};

/// The new state of an application. Its type does not change.
#[derive(Clone, Debug, Default)]
pub struct ApplicationChange {
    pub name: Option<String>,
    pub grants: NewGrants,
}

/// Replaces name, permissions and rules of an application.
pub async fn update(
    vault: &Vault,
    requester: Requester<'_>,
    id: &str,
    change: ApplicationChange,
    template: &ResponseTemplate<'_, Application>,
) -> Result<Application, Error> {
    requester.require(Permission::ApplicationUpdate)?;
    let change = validate(change)?;
    let id = uuid(id)?;
    let bucket = Bucket::of_application(id);
    let mut access = access_change::begin(vault, requester.tenant(), &[bucket]).await?;
    let changed = write(vault, &mut access, requester, id, change).await;
    let entries = |changed: &Application| {
        let entry = requester.entry(Operation::Update, EntityKind::Application, id);
        vec![entry.with_event(changed.event(EventKind::ApplicationUpdated))]
    };
    commit_and_invalidate(vault, access, changed, entries, template).await
}

/// A change whose grants are not yet validated for the type of the application.
struct ValidatedChange {
    name: String,
    grants: NewGrants,
}

/// Validates everything that does not depend on the application, before it is looked up.
fn validate(change: ApplicationChange) -> Result<ValidatedChange, Error> {
    let mut broken = Vec::new();
    let name = collect_errors(name(change.name), &mut broken);
    collect_errors(change.grants.clone().validate(None), &mut broken);
    match name {
        Some(name) if broken.is_empty() => Ok(ValidatedChange {
            name,
            grants: change.grants,
        }),
        _ => Err(Error::Invalid(broken)),
    }
}

/// Locks the row and verifies its MAC first, so that a row written by SQL never gets a valid MAC.
async fn write(
    vault: &Vault,
    access: &mut AccessChange<'_>,
    requester: Requester<'_>,
    id: Uuid,
    change: ValidatedChange,
) -> Result<Application, Error> {
    let tenant = requester.tenant();
    let stored = store::lock(access, tenant, id).await?;
    let stored = stored.ok_or(Error::NotFound("application"))?;
    let keys = store::list_keys_of_locked(access, tenant, id).await?;
    let mut application = open(vault, tenant, &stored, &keys)?;
    // Both the current and the new grants are checked: changing a more privileged application is an escalation too.
    let (config, kind) = (&vault.config.tenants, application.kind);
    requester.require_grantable(config, kind, &application.grants)?;
    let grants = change.grants.validate(Some(kind));
    application.grants = grants.map_err(Error::Invalid)?;
    requester.require_grantable(config, kind, &application.grants)?;
    application.name = change.name;
    let row = ApplicationRow {
        tenant_number: tenant.number,
        id,
        name: application.name.clone(),
        kind: application.kind,
        grants: application.grants.to_text(),
        expires_at: application.expires_at,
    };
    let row_mac = row.row_mac(vault.keys.control());
    application.modified_at = store::update(access, &row, requester.id(), &row_mac).await?;
    access.replace(Bucket::of_application(id), &stored.row_mac, &row_mac)?;
    application.modified_by = requester.id();
    Ok(application)
}
