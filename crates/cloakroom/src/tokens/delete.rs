//! Deleting tokens for good: on request, and when their time has come.

use super::token::entry;
use super::{Error, store};
use crate::access::{Permission, Subject};
use crate::audit::Operation;
use crate::caller::Caller;
use crate::token_attributes::TokenId;
use crate::token_types::TokenKind;
use crate::vault::Vault;
use crate::{containers, keys, storage};

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
        let (number, kind) = store::find_place(&vault.db, caller.tenant, &id)
            .await?
            .ok_or(Error::NotFound)?;
        let kind = TokenKind::from_number(kind).ok_or(keys::Error::Integrity)?;
        let container = containers::container_of(vault, caller.tenant, number)
            .await?
            .ok_or(keys::Error::Integrity)?;
        let subject = Subject {
            container: &container,
            id: Some(&id.text()),
        };
        caller.require_on(Permission::TokenDelete, subject)?;
        let entry = entry(caller, Operation::Delete, (&id, kind), None);
        if store::delete(vault, caller.tenant, &id, (number, &container), entry).await? {
            return Ok(());
        }
    }
    Err(Error::NotFound)
}

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;

/// Removes every expired token, batch by batch, and tells how many there were.
///
/// Nobody sees them from the instant they expire; this frees what they occupy.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let batch = store::sweep(vault, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(removed);
        }
    }
}
