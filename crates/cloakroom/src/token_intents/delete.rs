//! Deleting an intent that will not become a token.

use uuid::Uuid;

use super::{Error, store};
use crate::access::Permission;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::vault::Vault;

/// Deletes an intent; nothing of it is left.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_somewhere(Permission::TokenIntentDelete)?;
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let entry = Entry::of(caller, Operation::Delete, EntityKind::TokenIntent, id);
    match store::delete(vault, caller.tenant, &id, entry).await? {
        true => Ok(()),
        false => Err(Error::NotFound),
    }
}
