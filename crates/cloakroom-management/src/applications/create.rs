//! Creates applications.

use std::iter;

use cloakroom_core::access::{ApplicationRow, AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Operation};
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids;
use uuid::Uuid;

use super::application::{
    Application, ApplicationKey, NewApplication, ValidatedApplication, expired,
};
use super::key::{self, CreatedKey};
use super::{Error, Requester, commit, store};

/// A new application, and its key if one was requested.
pub struct CreatedApplication {
    pub application: Application,
    pub key: Option<CreatedKey>,
}

/// Creates an application whose grants suit its type, together with its first key.
pub async fn create(
    vault: &Vault,
    requester: Requester<'_>,
    new: NewApplication,
    template: &ResponseTemplate<'_, CreatedApplication>,
) -> Result<CreatedApplication, Error> {
    requester.require(Permission::ApplicationCreate)?;
    let new = new.validate()?;
    requester.require_grantable(&vault.config.tenants, new.kind, &new.grants)?;
    let id = ids::new_uuid();
    let bucket = Bucket::of_application(id);
    let mut change = access_change::begin(vault, requester.tenant(), &[bucket]).await?;
    let created = insert(vault, &mut change, requester, (id, new)).await;
    let entries = |created: &CreatedApplication| {
        let id = created.application.id;
        let event = created.application.event(EventKind::ApplicationCreated);
        let application = requester.entry(Operation::Create, EntityKind::Application, id);
        let key = created.key.as_ref();
        let key = key.map(|key| key::created_entry(requester, id, &key.into()));
        iter::once(application.with_event(event))
            .chain(key)
            .collect()
    };
    commit(change, created, entries, template).await
}

async fn insert(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    requester: Requester<'_>,
    (id, new): (Uuid, ValidatedApplication),
) -> Result<CreatedApplication, Error> {
    let row = ApplicationRow {
        tenant_number: requester.tenant().number,
        id,
        name: new.name,
        kind: new.kind,
        grants: new.grants.to_text(),
        expires_at: new.expires_at,
    };
    let row_mac = row.row_mac(vault.keys.control());
    let created_at = store::insert(change, &row, requester.id(), &row_mac).await?;
    let created_at = created_at.ok_or_else(|| Error::Invalid(expired()))?;
    change.insert(Bucket::of_application(id), &row_mac)?;
    let key = match new.create_key {
        true => Some(key::insert(vault, change, requester, &row).await?),
        false => None,
    };
    let application = Application {
        id: row.id,
        name: row.name,
        kind: row.kind,
        grants: new.grants,
        keys: key.iter().map(ApplicationKey::from).collect(),
        created_by: requester.id(),
        created_at,
        modified_by: None,
        modified_at: None,
        expires_at: row.expires_at,
    };
    Ok(CreatedApplication { application, key })
}
