//! Replays: delivers finished events again.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, AuditedTransaction, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::State;
use super::store;
use crate::webhooks::{self, Error};

/// Events that one request replays.
const REPLAY_MAX: i64 = 10_000;

/// Which events to replay, by the time they were recorded.
#[derive(Clone, Copy, Debug)]
pub struct ReplayRange {
    pub from: Timestamp,
    pub to: Timestamp,
    /// Only events in this state.
    pub state: Option<State>,
}

/// One event, or those of a time range.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    Event(Uuid),
    Range(ReplayRange),
}

/// What a replay did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Events that are pending again.
    pub count: usize,
    /// Where the next replay of the range begins, if this one reached its maximum.
    pub next_from: Option<Timestamp>,
}

/// Replays events of a webhook of the caller's tenant.
pub async fn replay(
    vault: &Vault,
    caller: &Caller,
    webhook: &str,
    selection: Selection,
) -> Result<Replayed, Error> {
    caller.require_plain(Permission::WebhookUpdate)?;
    let id = webhook.parse().map_err(|_| Error::NotFound)?;
    let entry = Entry::new(caller, Operation::Invoke, EntityKind::Webhook, id);
    write(vault, caller.tenant, id, selection, entry).await
}

/// The same for an operator.
pub async fn replay_as_operator(
    vault: &Vault,
    tenant: TenantId,
    webhook: Uuid,
    selection: Selection,
) -> Result<Replayed, Error> {
    let (operation, entity) = (Operation::Invoke, EntityKind::Webhook);
    let entry = Entry::by_system(tenant.number, operation, entity, webhook);
    write(vault, tenant, webhook, selection, entry).await
}

async fn write(
    vault: &Vault,
    tenant: TenantId,
    webhook: Uuid,
    selection: Selection,
    entry: Entry,
) -> Result<Replayed, Error> {
    let stored = webhooks::find_stored(&vault.db, tenant, webhook).await?;
    let stored = stored.ok_or(Error::NotFound)?;
    if !webhooks::verified(vault.keys.control(), stored)?.is_enabled {
        return Err(Error::Disabled);
    }
    let transaction = audit::begin(&vault.audit).await?;
    match select(&transaction, tenant, webhook, selection).await {
        Ok(replayed) => {
            transaction.commit(&[entry]).await?;
            Ok(replayed)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

async fn select(
    transaction: &AuditedTransaction<'_>,
    tenant: TenantId,
    webhook: Uuid,
    selection: Selection,
) -> Result<Replayed, Error> {
    match selection {
        Selection::Range(range) => {
            let recorded =
                store::replay_range(transaction, tenant, webhook, &range, REPLAY_MAX).await?;
            let is_full = i64::try_from(recorded.len()).is_ok_and(|count| count >= REPLAY_MAX);
            Ok(Replayed {
                count: recorded.len(),
                next_from: recorded.into_iter().max().filter(|_| is_full),
            })
        }
        Selection::Event(event) => {
            let is_replayed = store::replay_event(transaction, tenant, webhook, event).await?;
            // A pending one will be delivered anyway.
            if !is_replayed && !store::exists(transaction, tenant, webhook, event).await? {
                return Err(Error::NoEvent);
            }
            Ok(Replayed {
                count: usize::from(is_replayed),
                next_from: None,
            })
        }
    }
}
