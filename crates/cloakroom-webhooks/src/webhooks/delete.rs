//! Deletes webhooks.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;

use super::find::parse_id;
use super::{Error, store};

/// Deletes a webhook. Its pending events are not delivered any more; the sweep removes its log.
///
/// The row MAC is not verified: deleting an altered row is safe.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::WebhookDelete)?;
    let id = parse_id(id)?;
    let transaction = audit::begin(&vault.audit).await?;
    if !store::delete(&transaction, caller.tenant, id).await? {
        transaction.roll_back().await;
        return Err(Error::NotFound);
    }
    let entry = Entry::new(caller, Operation::Delete, EntityKind::Webhook, id);
    Ok(transaction.commit(&[entry]).await?)
}
