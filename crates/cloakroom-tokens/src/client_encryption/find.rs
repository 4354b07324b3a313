//! Reads and lists client encryption keys, without their key material.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::create::KEYS_MAX;
use super::key::pem;
use super::store::StoredKey;
use super::{ClientKey, Error, store};

/// Lists the unexpired keys, newest first.
pub async fn list(vault: &Vault, caller: &Caller) -> Result<Vec<ClientKey>, Error> {
    caller.require_anywhere(Permission::KeysRead)?;
    let mut keys = Vec::new();
    for stored in store::list(&vault.db, caller.tenant, KEYS_MAX).await? {
        keys.push(verify(vault, caller.tenant, stored).await?.key);
    }
    Ok(keys)
}

/// Rejects a row that SQL altered. Otherwise SQL could replace the public key, and clients would encrypt to another.
async fn verify(vault: &Vault, tenant: TenantId, stored: StoredKey) -> Result<StoredKey, Error> {
    let record = stored.key.record(&stored.public_key);
    vault.keys.open(tenant, &record, &stored.sealed).await?;
    Ok(stored)
}

/// Finds the public key of an unexpired key, in PEM framing. It is public: any client of the tenant may encrypt to it.
pub async fn find_public_key(vault: &Vault, tenant: TenantId, id: &str) -> Result<String, Error> {
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let stored = store::find(&vault.db, tenant, id).await?;
    let stored = verify(vault, tenant, stored.ok_or(Error::NotFound)?).await?;
    Ok(pem(&stored.public_key))
}

/// Finds an unexpired key.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<ClientKey, Error> {
    caller.require_anywhere(Permission::KeysRead)?;
    let id = Uuid::parse_str(id).map_err(|_| Error::NotFound)?;
    let stored = store::find(&vault.db, caller.tenant, id).await?;
    let stored = verify(vault, caller.tenant, stored.ok_or(Error::NotFound)?).await?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::ClientKey, id);
    vault.audit.record_reads(vec![entry]).await?;
    Ok(stored.key)
}
