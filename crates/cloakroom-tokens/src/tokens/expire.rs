//! Deletes expired tokens, with audit log entries.

use cloakroom_core::audit::{self, AuditedTransaction, EntityKind, Entry, Operation};
use cloakroom_core::events::{Event, EventKind};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Error;
use uuid::Uuid;

use super::store;
use super::token::entity_kind;
use crate::tokens::TokenVault;

/// Deletes up to `limit` expired tokens of all tenants; returns how many were deleted.
pub(super) async fn delete_expired(vault: &TokenVault, limit: i64) -> Result<u64, Error> {
    let transaction = audit::begin(&vault.audit).await?;
    let deleted = store::sweep(&transaction, limit).await?;
    commit(transaction, deleted).await
}

/// Deletes one expired token whose id or claim is needed.
pub(super) async fn delete_one_expired(
    vault: &TokenVault,
    tenant: TenantId,
    key: &Uuid,
) -> Result<(), Error> {
    let transaction = audit::begin(&vault.audit).await?;
    let deleted = store::sweep_one(&transaction, tenant, key).await?;
    commit(transaction, deleted).await?;
    Ok(())
}

async fn commit(
    transaction: AuditedTransaction<'_>,
    deleted: Vec<store::DeletedToken>,
) -> Result<u64, Error> {
    if deleted.is_empty() {
        transaction.roll_back().await;
        return Ok(0);
    }
    let count = deleted.len() as u64;
    let entry = |token: store::DeletedToken| {
        let kind = token.kind.map_or(EntityKind::Token, entity_kind);
        let event = Event::of_id(EventKind::TokenExpired, "token", &token.id);
        let entry = Entry::by_system(token.tenant_number, Operation::Expire, kind, token.id);
        entry.with_event(event)
    };
    let entries: Vec<Entry> = deleted.into_iter().map(entry).collect();
    transaction.commit(&entries).await?;
    Ok(count)
}
