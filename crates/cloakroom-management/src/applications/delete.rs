//! Deletes an application with its keys.

use cloakroom_core::access::{Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Operation};
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::find::uuid;
use super::{Error, Requester, commit_and_invalidate, event, store};

/// Deletes an application and its keys in one transaction. Tokens that it created remain.
///
/// The row MAC is not verified first: revoking access is safe even if the row was tampered with.
pub async fn delete(vault: &Vault, requester: Requester<'_>, id: &str) -> Result<(), Error> {
    requester.require(Permission::ApplicationDelete)?;
    let id = uuid(id)?;
    let bucket = Bucket::of_application(id);
    let mut change = access_change::begin(vault, requester.tenant(), &[bucket]).await?;
    let deleted = remove(&mut change, requester.tenant(), id).await;
    let entries = |keys: &Vec<Uuid>| {
        let key_entry = |key: &Uuid| {
            let entry = requester.entry(Operation::Delete, EntityKind::ApplicationKey, *key);
            entry.with_event(event::key_deleted(id, *key))
        };
        let event = Event::of_id(EventKind::ApplicationDeleted, "application", id);
        let entry = requester.entry(Operation::Delete, EntityKind::Application, id);
        let entries = keys.iter().map(key_entry);
        entries.chain([entry.with_event(event)]).collect()
    };
    let deleted =
        commit_and_invalidate(vault, change, deleted, entries, &ResponseTemplate::none()).await;
    deleted.map(drop)
}

/// Keys are deleted after the application. Creating a key locks the application, so no key can be added in between.
async fn remove(
    change: &mut AccessChange<'_>,
    tenant: TenantId,
    id: Uuid,
) -> Result<Vec<Uuid>, Error> {
    let bucket = Bucket::of_application(id);
    let deleted = store::delete(change, tenant, id).await?;
    change.remove(bucket, &deleted.ok_or(Error::NotFound("application"))?)?;
    let mut keys = Vec::new();
    for (key, row_mac) in store::delete_keys(change, tenant, id).await? {
        change.remove(bucket, &row_mac)?;
        keys.push(key);
    }
    Ok(keys)
}
