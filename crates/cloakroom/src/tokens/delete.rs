//! Deleting tokens for good: on request, and when their time has come.

use jiff::Timestamp;

use super::Error;
use super::token::entry;
use crate::access::{Permission, Subject};
use crate::audit::{Entry, Operation};
use crate::caller::Caller;
use crate::ids::TenantId;
use crate::token_attributes::TokenId;
use crate::token_types::TokenKind;
use crate::vault::Vault;
use crate::{containers, keys, storage, token_rows};

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
        let (number, kind) = token_rows::find_place(&vault.db, caller.tenant, &id)
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
        if token_rows::delete(vault, caller.tenant, &id, (number, &container), entry).await? {
            return Ok(());
        }
    }
    Err(Error::NotFound)
}

/// Deletes a token again that was deleted at this moment, and that an older backup brought back; false if there is none.
/// One that is younger has only got the same name.
pub(crate) async fn erase(
    vault: &Vault,
    tenant: TenantId,
    id: &str,
    deleted_at: Timestamp,
) -> Result<bool, Error> {
    let id = TokenId::of(tenant, id);
    let row = token_rows::find(&vault.token_reads, tenant, &id).await?;
    let Some(row) = row.filter(|row| row.id == id && row.created_at < deleted_at) else {
        return Ok(false);
    };
    let kind = TokenKind::from_number(row.kind).ok_or(keys::Error::Integrity)?;
    let container = containers::container_of(vault, tenant, row.container)
        .await?
        .ok_or(keys::Error::Integrity)?;
    let entity = token_rows::entity_kind(kind);
    let entry = Entry::by_system(tenant.number, Operation::Delete, entity, id.text());
    let place = (row.container, &container);
    Ok(token_rows::delete(vault, tenant, &id, place, entry).await?)
}

/// Few enough that a batch is over in a moment and locks little.
const BATCH: i64 = 1_000;

/// Removes every expired token, batch by batch, and tells how many there were.
///
/// Nobody sees them from the instant they expire; this frees what they occupy.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let batch = token_rows::sweep(vault, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(removed);
        }
    }
}
