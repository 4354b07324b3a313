//! Lists the audit log of a tenant, newest first, within its log retention.

use std::time::Duration;

use cloakroom_platform::api::{ApiError, FieldError};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use jiff::Timestamp;
use uuid::Uuid;

use super::day::{SLOTS, day_of, slot_of};
use super::entry::{ActorKind, EntityKind, Operation, Outcome, message};
use super::store::{self, LogQuery, StoredEntry};
use super::{Audit, cursor};
use crate::access::{Permission, PermissionDenied};
use crate::caller::Caller;
use crate::keys::ControlKey;

/// Clocks of nodes are estimates of the database's clock; entries of another node may be this far ahead.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// Entries, newest first, among which a deletion is. Few follow it.
const DELETION_SEARCH: i64 = 100;

/// Which entries to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub kinds: Option<Vec<EntityKind>>,
    pub entity_id: Option<String>,
    /// Inclusive.
    pub start: Option<Timestamp>,
    /// Exclusive.
    pub end: Option<Timestamp>,
}

impl Filter {
    /// Canonical encoding of the filter, to which cursors are bound. A version that encodes filters
    /// differently rejects the cursors of this one.
    pub(super) fn canonical(&self) -> Vec<u8> {
        format!("{self:?}").into_bytes()
    }
}

/// Which page to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub size: usize,
    pub from: PageStart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// The first page.
    Newest,
    /// A page number, counted from 1.
    Page(u32),
    /// After the entry that the `next` of an earlier page encodes.
    Cursor(String),
}

/// One entry as a tenant sees it.
pub struct LogEntry {
    pub id: Uuid,
    pub actor_id: Option<Uuid>,
    pub actor_kind: ActorKind,
    pub entity: EntityKind,
    pub entity_id: String,
    pub operation: Operation,
    pub outcome: Outcome,
    /// The client's IP address, or the operator of a CLI command.
    pub origin: Option<String>,
    pub message: String,
    pub created_at: Timestamp,
}

/// One page of entries, newest first.
pub struct LogPage {
    pub entries: Vec<LogEntry>,
    /// Cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl From<ListError> for ApiError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::PermissionDenied(denied) => denied.into(),
            ListError::Invalid(errors) => Self::all_invalid(errors),
            ListError::Storage(error) => error.into(),
        }
    }
}

/// Lists one page of the audit log of the caller's tenant.
///
/// Includes the entries that this node has queued, but not those that other nodes have queued within
/// the last second.
pub async fn list(
    audit: &Audit,
    control: &ControlKey,
    caller: &Caller,
    filter: &Filter,
    page: &PageRequest,
) -> Result<LogPage, ListError> {
    caller.require_anywhere(Permission::LogRead)?;
    // If the flush fails, queued entries are not listed yet; the background writer retries them.
    let _ = audit.flush().await;
    let tenant = caller.tenant;
    // The limit below is one more than the size.
    let size = i64::try_from(page.size).unwrap_or(i64::MAX - 1);
    let (before, offset) = match &page.from {
        PageStart::Newest => (None, 0),
        PageStart::Page(number) => (None, i64::from(*number - 1) * size),
        PageStart::Cursor(text) => {
            let position = cursor::read(control, tenant, filter, text).ok_or_else(|| {
                let rule = "must be the `next` of a page with the same filter";
                ListError::Invalid(vec![FieldError::new("start", rule)])
            })?;
            (Some(position), 0)
        }
    };
    let now = audit.writers.clock.now().await?;
    let (from, to) = time_range(now, caller.quotas.log_retention, filter);
    if page.size == 0 || to <= from {
        return Ok(LogPage {
            entries: Vec::new(),
            next: None,
        });
    }
    let query = LogQuery {
        slots: &slots(from, to),
        from,
        to,
        kinds: filter
            .kinds
            .as_ref()
            .map(|kinds| kinds.iter().map(|kind| *kind as i16).collect()),
        entity_id: filter.entity_id.as_deref(),
        before,
        // The additional row shows whether there is a next page.
        limit: size + 1,
        offset,
    };
    let mut rows = store::list(&audit.writers.db, tenant, &query).await?;
    let has_more = rows.len() > page.size;
    rows.truncate(page.size);
    let last = rows.last().filter(|_| has_more);
    let next = last.map(|(entry, _)| {
        let position = (entry.created_at, entry.chain, entry.seq);
        cursor::write(control, tenant, filter, position)
    });
    Ok(LogPage {
        entries: rows.into_iter().filter_map(to_log_entry).collect(),
        next,
    })
}

/// Whether the audit log has the deletion of an entity since a time. Rows of the log that SQL deletes are found by its
/// verification, not here.
pub async fn is_deleted(
    audit: &Audit,
    tenant: TenantId,
    (kind, id): (EntityKind, &str),
    since: Timestamp,
) -> Result<bool, storage::Error> {
    let now = audit.writers.clock.now().await?;
    let from = since.checked_sub(CLOCK_TOLERANCE).unwrap_or(since);
    let to = now.checked_add(CLOCK_TOLERANCE).unwrap_or(now);
    let query = LogQuery {
        slots: &slots(from, to),
        from,
        to,
        kinds: Some(vec![kind as i16]),
        entity_id: Some(id),
        before: None,
        limit: DELETION_SEARCH,
        offset: 0,
    };
    let rows = store::list(&audit.writers.db, tenant, &query).await?;
    let is_deletion = |(entry, _): &StoredEntry| entry.operation == Operation::Delete as i16;
    Ok(rows.iter().any(is_deletion))
}

/// The time range of the filter, limited to the log retention.
fn time_range(now: Timestamp, retention: Duration, filter: &Filter) -> (Timestamp, Timestamp) {
    let oldest = now.checked_sub(retention).unwrap_or(Timestamp::UNIX_EPOCH);
    let newest = now.checked_add(CLOCK_TOLERANCE).unwrap_or(now);
    let from = filter.start.map_or(oldest, |start| start.max(oldest));
    let to = filter.end.map_or(newest, |end| end.min(newest));
    (from, to)
}

/// The partitions that hold the days of a time range, each once: the days are a ring of `SLOTS`
/// partitions, so a longer range covers all of them.
pub(super) fn slots(from: Timestamp, to: Timestamp) -> Vec<i16> {
    let (first, last) = (day_of(from), day_of(to));
    (first..=last.min(first.saturating_add(SLOTS - 1)))
        .map(slot_of)
        .collect()
}

/// Decodes an entry. `None` if it was written by a newer version with an entity, operation, actor or
/// outcome that this version does not know.
///
/// Entries have no id column: the id is made of the hash of the entry, in the form of a UUID.
fn to_log_entry((stored, _): StoredEntry) -> Option<LogEntry> {
    let leaf = stored.leaf(&mut Vec::new());
    let (id, _) = leaf.split_first_chunk::<16>()?;
    let entity = EntityKind::from_number(stored.entity)?;
    let operation = Operation::from_number(stored.operation)?;
    let actor_kind = ActorKind::from_number(stored.actor_kind)?;
    Some(LogEntry {
        id: uuid::Builder::from_random_bytes(*id).into_uuid(),
        actor_id: Some(stored.actor).filter(|actor| !actor.is_nil()),
        actor_kind,
        entity,
        entity_id: stored.entity_id,
        operation,
        outcome: Outcome::from_number(stored.outcome)?,
        origin: stored.origin,
        message: message(entity, operation),
        created_at: stored.created_at,
    })
}
