//! Lists deletions in all tenants, for the erasure ledger.

use cloakroom_platform::storage;
use jiff::Timestamp;

use super::Audit;
use super::chain_entry::ChainEntry;
use super::day::day_of;
use super::entry::{EntityKind, Operation};
use super::verify::{TrustedCheckpoints, VerificationReport, verify_days};

/// Entities that restoring an older backup would bring back.
const KINDS: [EntityKind; 6] = [
    EntityKind::Application,
    EntityKind::ApplicationKey,
    EntityKind::Bank,
    EntityKind::Card,
    EntityKind::Tenant,
    EntityKind::Token,
];

/// A deleted entity.
pub struct Deleted {
    pub at: Timestamp,
    pub tenant_number: i32,
    pub kind: EntityKind,
    pub id: String,
}

/// Failure to list deletions.
#[derive(Debug)]
pub enum ListDeletedError {
    /// The chains of these days do not verify, so none of their entries is proven.
    Unverified(VerificationReport),
    Storage(storage::Error),
}

impl From<storage::Error> for ListDeletedError {
    fn from(error: storage::Error) -> Self {
        Self::Storage(error)
    }
}

/// Lists all deletions in a time range, oldest first, from entries whose chains verify.
///
/// The chains of all days of the range are verified in the snapshot from which the entries are
/// read. Any finding fails the whole list: a row that was inserted with SQL must not cause a
/// deletion.
pub async fn list_deleted(
    audit: &Audit,
    from: Timestamp,
    to: Timestamp,
    trusted: Option<TrustedCheckpoints>,
) -> Result<Vec<Deleted>, ListDeletedError> {
    let mut deletions: Vec<((Timestamp, i32, i32), Deleted)> = Vec::new();
    let days = day_of(from)..=day_of(to);
    let verified = verify_days(audit, days, trusted, |record| {
        if from <= record.created_at && record.created_at < to {
            let position = (record.created_at, record.chain, record.seq);
            deletions.extend(deleted(record).map(|deleted| (position, deleted)));
        }
    })
    .await?;
    if verified.finding_count > 0 {
        return Err(ListDeletedError::Unverified(verified));
    }
    deletions.sort_unstable_by_key(|(position, _)| *position);
    Ok(deletions.into_iter().map(|(_, deleted)| deleted).collect())
}

/// The deleted entity, if this entry is a deletion that a restored backup would undo.
fn deleted(record: &ChainEntry) -> Option<Deleted> {
    let kind = EntityKind::from_number(record.entity)?;
    let is_deletion = record.operation == Operation::Delete as i16 && KINDS.contains(&kind);
    is_deletion.then(|| Deleted {
        at: record.created_at,
        tenant_number: record.tenant_number,
        kind,
        id: record.entity_id.clone(),
    })
}
