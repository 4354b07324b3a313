//! Deletes webhooks.

use cloakroom_core::access::{Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use uuid::Uuid;

use super::find::parse_id;
use super::{Error, store};

/// Deletes a webhook. Its pending events are not delivered any more; the sweep removes its log.
///
/// The row MAC is not verified: deleting an altered row is safe.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::WebhookDelete)?;
    let id = parse_id(id)?;
    let mut change = access_change::begin(vault, caller.tenant, &[Bucket::RESOURCES]).await?;
    if let Err(error) = remove(&mut change, caller, id).await {
        change.roll_back().await;
        return Err(error);
    }
    let entry = Entry::new(caller, Operation::Delete, EntityKind::Webhook, id);
    Ok(change.commit(&[entry]).await?)
}

async fn remove(change: &mut AccessChange<'_>, caller: &Caller, id: Uuid) -> Result<(), Error> {
    let row_mac = store::delete(change, caller.tenant, id).await?;
    Ok(change.remove(Bucket::RESOURCES, &row_mac.ok_or(Error::NotFound)?)?)
}
