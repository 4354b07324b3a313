//! Counts the active tokens of a tenant.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Audit;
use super::entry::{EntityKind, Operation};
use super::list::slots;
use super::store::{self, EntityCount};

const TOKENS: [EntityKind; 3] = [EntityKind::Token, EntityKind::Card, EntityKind::Bank];
const OPERATIONS: [Operation; 4] = [
    Operation::Create,
    Operation::Read,
    Operation::Search,
    Operation::Use,
];

/// Number of distinct tokens that a tenant has created, read, searched or used since the start of
/// the month, in UTC.
///
/// Includes entries that this node has queued. Incomplete if `audit.keep_days` is shorter than a
/// month.
pub async fn count_active_tokens(audit: &Audit, tenant: TenantId) -> Result<u64, storage::Error> {
    let _ = audit.flush().await;
    let now = audit.writers.clock.now().await?;
    let from = start_of_month(now);
    let kinds = TOKENS.map(|kind| kind as i16);
    let operations = OPERATIONS.map(|operation| operation as i16);
    let count = store::count_entities(
        &audit.writers.db,
        tenant,
        &EntityCount {
            slots: &slots(from, now),
            from,
            kinds: &kinds,
            operations: &operations,
        },
    )
    .await?;
    Ok(count.unsigned_abs())
}

/// The start of the month.
fn start_of_month(at: Timestamp) -> Timestamp {
    let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
    let first = first.to_zoned(TimeZone::UTC);
    first.map_or(at, |first| first.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn month_starts_at_midnight_utc() {
        let cases = [
            ("2030-02-28T23:59:59.999999Z", "2030-02-01T00:00:00Z"),
            ("2030-03-01T00:00:00Z", "2030-03-01T00:00:00Z"),
            ("2030-12-31T23:00:00-05:00", "2031-01-01T00:00:00Z"),
        ];
        for (at, expected) in cases {
            let month = start_of_month(at.parse().unwrap());
            assert_eq!(month, expected.parse().unwrap(), "{at}");
        }
    }
}
