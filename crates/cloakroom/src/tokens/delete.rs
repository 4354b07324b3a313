//! Deleting a token for good.

use super::{Error, store};
use crate::access::Permission;
use crate::caller::Caller;
use crate::token_attributes::TokenId;
use crate::vault::Vault;
use crate::{containers, keys};

/// How many times to look again when the token changes its container meanwhile.
const ATTEMPTS: usize = 3;

/// Deletes a token that the caller may delete where it lies.
///
/// The statement names the container that was authorized, so a token that is moved in between is
/// looked at again instead of being deleted from where the caller has no rights.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_somewhere(Permission::TokenDelete)?;
    let id = TokenId::of(caller.tenant, id);
    for _ in 0..ATTEMPTS {
        let number = store::find_container_number(&vault.db, caller.tenant, &id)
            .await?
            .ok_or(Error::NotFound)?;
        let container = containers::container_of(vault, caller.tenant, number)
            .await?
            .ok_or(keys::Error::Integrity)?;
        caller.require(Permission::TokenDelete, &container)?;
        if store::delete(&vault.db, caller.tenant, &id, (number, &container)).await? {
            return Ok(());
        }
    }
    Err(Error::NotFound)
}
