//! Listing what happened in a tenant, newest first, as far back as its quota shows.

use jiff::Timestamp;
use uuid::Uuid;

use super::chain::{SLOTS, day_of, slot_of};
use super::cursor;
use super::entry::{ActorKind, EntityKind, Operation, Outcome, message};
use super::store::{self, Kept, Wanted};
use crate::access::Permission;
use crate::api::Broken;
use crate::caller::{Caller, Denied};
use crate::storage;
use crate::vault::Vault;

/// Which records are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub kinds: Option<Vec<EntityKind>>,
    pub entity_id: Option<String>,
    /// From this moment on.
    pub start: Option<Timestamp>,
    /// Before this moment.
    pub end: Option<Timestamp>,
}

impl Filter {
    /// The same bytes for the same filter, for cursors to be bound to.
    pub(super) fn canonical(&self) -> Vec<u8> {
        format!("{self:?}").into_bytes()
    }
}

/// Which part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPage {
    pub size: usize,
    pub from: From,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The newest record.
    Newest,
    /// A page by its number, counted from 1.
    Page(u32),
    /// What a page came with as `next`.
    Cursor(String),
}

/// One record as a tenant sees it.
pub(super) struct Shown {
    pub id: Uuid,
    pub actor_id: Option<Uuid>,
    pub actor_kind: ActorKind,
    pub entity: EntityKind,
    pub entity_id: String,
    pub operation: Operation,
    pub outcome: Outcome,
    pub message: String,
    pub created_at: Timestamp,
}

pub(super) struct Listed {
    pub records: Vec<Shown>,
    pub next: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// One page of what happened in the caller's tenant.
///
/// What this node did before is on it, even if it was noted a moment ago.
pub(super) async fn list(
    vault: &Vault,
    caller: &Caller,
    filter: &Filter,
    page: &LogPage,
) -> Result<Listed, Error> {
    caller.require_somewhere(Permission::LogRead)?;
    // A record that cannot be kept now is not hidden by that: it is not there yet.
    let _ = vault.audit.flush().await;
    let (control, tenant) = (vault.keys.control(), caller.tenant);
    let (before, offset) = match &page.from {
        From::Newest => (None, 0),
        From::Page(number) => (None, i64::from(*number - 1) * size(page.size)),
        From::Cursor(text) => {
            let position = cursor::read(control, tenant, filter, text);
            let rule = "must be the `next` of a page with the same filter";
            let position = position.ok_or(Error::Invalid(vec![Broken::new("start", rule)]))?;
            (Some(position), 0)
        }
    };
    let now = vault.audit.now().await?;
    let (from, to) = window(now, caller.quotas.log_retention, filter);
    if page.size == 0 || to <= from {
        return Ok(Listed {
            records: Vec::new(),
            next: None,
        });
    }
    let wanted = Wanted {
        slots: &slots(from, to),
        from,
        to,
        kinds: filter
            .kinds
            .as_ref()
            .map(|kinds| kinds.iter().map(|kind| *kind as i16).collect()),
        entity_id: filter.entity_id.as_deref(),
        before,
        limit: size(page.size) + 1,
        offset,
    };
    let mut rows = store::list(&vault.db, tenant, &wanted).await?;
    let has_more = rows.len() > page.size;
    rows.truncate(page.size);
    let last = rows.last().filter(|_| has_more);
    let next = last.map(|(record, _)| {
        let position = (record.created_at, record.chain, record.seq);
        cursor::write(control, tenant, filter, position)
    });
    Ok(Listed {
        records: rows.into_iter().filter_map(shown).collect(),
        next,
    })
}

fn size(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX - 1)
}

/// What the filter asks for and the quota shows.
fn window(
    now: Timestamp,
    retention: std::time::Duration,
    filter: &Filter,
) -> (Timestamp, Timestamp) {
    let oldest = now.checked_sub(retention).unwrap_or(Timestamp::UNIX_EPOCH);
    // Other nodes' clocks may be a little ahead in what they signed.
    let newest = now
        .checked_add(std::time::Duration::from_secs(60))
        .unwrap_or(now);
    let from = filter.start.map_or(oldest, |start| start.max(oldest));
    let to = filter.end.map_or(newest, |end| end.min(newest));
    (from, to)
}

/// The partitions that days of a window lie in.
pub(super) fn slots(from: Timestamp, to: Timestamp) -> Vec<i16> {
    let (first, last) = (day_of(from), day_of(to));
    (first..=last.min(first.saturating_add(SLOTS - 1)))
        .map(slot_of)
        .collect()
}

/// A record that this version can read. Its id is its signature in the form of a UUID.
fn shown((record, mac): Kept) -> Option<Shown> {
    let entity = EntityKind::from_number(record.entity)?;
    let operation = Operation::from_number(record.operation)?;
    let actor_kind = ActorKind::from_number(record.actor_kind)?;
    Some(Shown {
        id: uuid::Builder::from_random_bytes(mac?).into_uuid(),
        actor_id: Some(record.actor).filter(|actor| !actor.is_nil()),
        actor_kind,
        entity,
        entity_id: record.entity_id,
        operation,
        outcome: Outcome::from_number(record.outcome)?,
        message: message(entity, operation),
        created_at: record.created_at,
    })
}
