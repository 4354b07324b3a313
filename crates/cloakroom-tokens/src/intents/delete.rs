//! Deletes an intent on request.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::PendingResponse;
use uuid::Uuid;

use super::{Error, store};
use crate::data_vault::DataVault;

/// Deletes an intent permanently.
pub async fn delete(vault: &DataVault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_anywhere(Permission::TokenIntentDelete)?;
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let event = Event::of_id(EventKind::TokenIntentDeleted, "token_intent", id);
    let entry =
        Entry::new(caller, Operation::Delete, EntityKind::TokenIntent, id).with_event(event);
    let change = audit::begin_statement(&vault.audit, &[entry], PendingResponse::default()).await?;
    match store::delete(change, caller.tenant, &id).await? {
        true => Ok(()),
        false => Err(Error::NotFound),
    }
}
