//! Reads and lists client encryption keys, without their key material.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::create::KEYS_MAX;
use super::key::pem;
use super::{ClientKey, Error, store};

/// Lists the unexpired keys, newest first.
pub async fn list(vault: &Vault, caller: &Caller) -> Result<Vec<ClientKey>, Error> {
    caller.require_anywhere(Permission::KeysRead)?;
    Ok(store::list(&vault.db, caller.tenant, KEYS_MAX).await?)
}

/// Finds the public key of an unexpired key, in PEM framing. It is public: any client of the tenant may encrypt to it.
pub async fn find_public_key(vault: &Vault, tenant: TenantId, id: &str) -> Result<String, Error> {
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let stored = store::find(&vault.db, tenant, id).await?;
    let stored = stored.ok_or(Error::NotFound)?;
    Ok(pem(&stored.public_key))
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
