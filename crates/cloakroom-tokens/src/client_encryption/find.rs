//! Reads and lists client encryption keys, without their key material.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use uuid::Uuid;

use super::create::KEYS_MAX;
use super::{ClientKey, Error, store};

/// Lists the unexpired keys, newest first.
pub async fn list(vault: &Vault, caller: &Caller) -> Result<Vec<ClientKey>, Error> {
    caller.require_anywhere(Permission::KeysRead)?;
    Ok(store::list(&vault.db, caller.tenant, KEYS_MAX).await?)
}

/// Finds an unexpired key.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<ClientKey, Error> {
    caller.require_anywhere(Permission::KeysRead)?;
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let stored = store::find(&vault.db, caller.tenant, id).await?;
    let stored = stored.ok_or(Error::NotFound)?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::ClientKey, id);
    vault.audit.record_reads(vec![entry]).await?;
    Ok(stored.key)
}
