//! Deletes tokens permanently, on request and after they expire.

use cloakroom_core::access::{Permission, Resource};
use cloakroom_core::audit::{self, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::PendingResponse;
use cloakroom_core::keys;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use jiff::Timestamp;

use super::Error;
use super::expire::delete_expired;
use super::store::{self, TokenPlace, TokenRow};
use super::token::{entity_kind, entry};
use crate::attributes::TokenId;
use crate::containers;
use crate::tokens::TokenVault;
use crate::types::TokenKind;

/// Attempts when the token is moved to another container concurrently.
const ATTEMPTS: usize = 3;

/// Deletes a token if the caller has `token:delete` in its container.
///
/// The id stays reserved for `tokens.deleted_id_retention`. The statement names the authorized container, so a token
/// that is moved concurrently is authorized again instead of being deleted where the caller has no rights.
pub async fn delete(vault: &TokenVault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_anywhere(Permission::TokenDelete)?;
    let id = TokenId::of(caller.tenant, id);
    for _ in 0..ATTEMPTS {
        let location = store::find_location(&vault.db, caller.tenant, &id)
            .await?
            .ok_or(Error::NotFound)?;
        let container_number = location.container_number;
        let kind = TokenKind::from_number(location.kind).ok_or(keys::Error::Integrity)?;
        let container =
            containers::container_of(&vault.container_numbers, caller.tenant, container_number)
                .await?
                .ok_or(keys::Error::Integrity)?;
        let subject = Resource {
            container: &container,
            id: Some(&id.text()),
        };
        caller.require_on(Permission::TokenDelete, subject)?;
        let entry = entry(caller, Operation::Delete, &id, kind, None);
        let entry = entry.with_event(deleted_event(&id));
        let place = TokenPlace {
            container_number,
            container: &container,
        };
        let change =
            audit::begin_statement(&vault.audit, &[entry], PendingResponse::default()).await?;
        let at = vault.clock.now().await?;
        if store::delete(change, caller.tenant, &id, place).await? {
            vault.latest_writes.remember(caller.tenant, id.key(), at);
            return Ok(());
        }
    }
    Err(Error::NotFound)
}

/// Deletes a token that was deleted at `deleted_at` and that restoring an older backup brought back; false if there is
/// none. A token created later only reuses the id.
pub async fn erase(
    vault: &TokenVault,
    tenant: TenantId,
    id: &str,
    deleted_at: Timestamp,
) -> Result<bool, Error> {
    let id = TokenId::of(tenant, id);
    let row = store::find(&vault.reads, tenant, &id).await?;
    let Some(row) = row.filter(|row| is_restored(row, &id, deleted_at)) else {
        return Ok(false);
    };
    let kind = TokenKind::from_number(row.kind).ok_or(keys::Error::Integrity)?;
    let container = containers::container_of(&vault.container_numbers, tenant, row.container)
        .await?
        .ok_or(keys::Error::Integrity)?;
    let entity = entity_kind(kind);
    let entry = Entry::by_system(tenant.number, Operation::Delete, entity, id.text());
    let entry = entry.with_event(deleted_event(&id));
    let place = TokenPlace {
        container_number: row.container,
        container: &container,
    };
    let change = audit::begin_statement(&vault.audit, &[entry], PendingResponse::default()).await?;
    Ok(store::delete(change, tenant, &id, place).await?)
}

fn deleted_event(id: &TokenId) -> Event {
    Event::of_id(EventKind::TokenDeleted, "token", id.text())
}

/// Whether restoring an older backup brought back a token that was deleted at `deleted_at`.
pub async fn is_erasable(
    vault: &TokenVault,
    tenant: TenantId,
    id: &str,
    deleted_at: Timestamp,
) -> Result<bool, Error> {
    let id = TokenId::of(tenant, id);
    let row = store::find(&vault.reads, tenant, &id).await?;
    Ok(row.is_some_and(|row| is_restored(&row, &id, deleted_at)))
}

/// Whether a row is the deleted token. A token created after `deleted_at` only reuses the id.
fn is_restored(row: &TokenRow, id: &TokenId, deleted_at: Timestamp) -> bool {
    row.id == *id && row.created_at < deleted_at
}

/// Small, so that a batch is short and holds few row locks.
const BATCH: i64 = 1_000;

/// Deletes all expired tokens in batches; returns how many were deleted.
///
/// Expired tokens are invisible from the instant they expire; this frees their storage.
pub async fn sweep(vault: &TokenVault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let batch = delete_expired(vault, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(removed);
        }
    }
}

/// Releases the ids of tokens deleted longer than `tokens.deleted_id_retention` ago, in batches.
pub async fn sweep_reserved_ids(vault: &TokenVault) -> Result<u64, storage::Error> {
    let retention = vault.config.tokens.deleted_id_retention;
    let mut released = 0;
    loop {
        let batch = store::sweep_reserved_ids(&vault.db, BATCH, retention).await?;
        released += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(released);
        }
    }
}
