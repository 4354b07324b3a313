//! Deleting a key: what was encrypted to it and not sent yet cannot be opened any more.

use uuid::Uuid;

use super::{Error, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::vault::Vault;

/// Deletes a key at once: no node remembers any.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_somewhere(Permission::KeysDelete)?;
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let recorded = audit::begin(vault).await?;
    if !store::delete(&recorded, caller.tenant, id).await? {
        recorded.roll_back().await;
        return Err(Error::NotFound);
    }
    let entry = Entry::of(caller, Operation::Delete, EntityKind::ClientKey, id);
    recorded.commit(&[entry]).await?;
    Ok(())
}
