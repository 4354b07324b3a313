//! Finding keys, without either half of them.

use uuid::Uuid;

use super::create::KEYS_MAX;
use super::{ClientKey, Error, store};
use crate::access::Permission;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::vault::Vault;

/// The keys that are in force, newest first.
pub async fn list(vault: &Vault, caller: &Caller) -> Result<Vec<ClientKey>, Error> {
    caller.require_somewhere(Permission::KeysRead)?;
    Ok(store::list(&vault.db, caller.tenant, KEYS_MAX).await?)
}

/// Finds a key that is in force.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<ClientKey, Error> {
    caller.require_somewhere(Permission::KeysRead)?;
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let kept = store::find(&vault.db, caller.tenant, id).await?;
    let kept = kept.ok_or(Error::NotFound)?;
    let entry = Entry::of(caller, Operation::Read, EntityKind::ClientKey, id);
    vault.audit.read(vec![entry]).await?;
    Ok(kept.key)
}
