//! Deletes client encryption keys: data encrypted to a deleted key can no longer be decrypted.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use uuid::Uuid;

use super::{Error, store};

/// Deletes a key. Takes effect at once, because no node caches these keys.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_anywhere(Permission::KeysDelete)?;
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let transaction = audit::begin(&vault.audit).await?;
    if !store::delete(&transaction, caller.tenant, id).await? {
        transaction.roll_back().await;
        return Err(Error::NotFound);
    }
    let entry = Entry::new(caller, Operation::Delete, EntityKind::ClientKey, id);
    transaction.commit(&[entry]).await?;
    Ok(())
}
