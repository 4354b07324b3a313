//! Making applications.

use std::iter;

use super::application::{Application, ApplicationKey, Checked, NewApplication, expired};
use super::key::{self, CreatedKey};
use super::{Asker, Error, settle, store};
use crate::access::{ApplicationRow, Authenticated as _, Permission};
use crate::audit::{self, EntityKind, Operation};
use crate::idempotency::Reply;
use crate::ids;
use crate::storage::Transaction;
use crate::vault::Vault;

/// A new application, with its key if it was to have one at once.
pub struct Created {
    pub application: Application,
    pub key: Option<CreatedKey>,
}

/// Makes an application whose grants fit its kind, together with its first key.
pub async fn create(
    vault: &Vault,
    asker: Asker<'_>,
    new: NewApplication,
    reply: &Reply<'_, Created>,
) -> Result<Created, Error> {
    asker.require(Permission::ApplicationCreate)?;
    let new = new.checked()?;
    let recorded = audit::begin(vault).await?;
    let created = insert(vault, &recorded, asker, new).await;
    let entries = |created: &Created| {
        let key = created.key.as_ref();
        let application = (EntityKind::Application, created.application.id);
        let made = key.map(|key| (EntityKind::ApplicationKey, key.id));
        let made = iter::once(application).chain(made);
        made.map(|(entity, id)| asker.entry(Operation::Create, entity, id))
            .collect()
    };
    settle(recorded, created, entries, reply).await
}

async fn insert(
    vault: &Vault,
    transaction: &Transaction,
    asker: Asker<'_>,
    new: Checked,
) -> Result<Created, Error> {
    let row = ApplicationRow {
        tenant_number: asker.tenant().number,
        id: ids::new_uuid(),
        name: new.name,
        kind: new.kind,
        grants: new.grants.to_text(),
        expires_at: new.expires_at,
    };
    let row_mac = row.row_mac(vault.keys.control());
    let created_at = store::insert(transaction, &row, asker.id(), &row_mac).await?;
    let created_at = created_at.ok_or_else(|| Error::Invalid(expired()))?;
    let key = match new.create_key {
        true => Some(key::insert(vault, transaction, asker, &row).await?),
        false => None,
    };
    let application = Application {
        id: row.id,
        name: row.name,
        kind: row.kind,
        grants: new.grants,
        keys: key.iter().map(ApplicationKey::from).collect(),
        created_by: asker.id(),
        created_at,
        modified_by: None,
        modified_at: None,
        expires_at: row.expires_at,
    };
    Ok(Created { application, key })
}
