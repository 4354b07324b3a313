//! Counting the tokens that a tenant works with.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::entry::{EntityKind, Operation};
use super::list::slots;
use super::store;
use crate::ids::TenantId;
use crate::storage;
use crate::vault::Vault;

const TOKENS: [EntityKind; 3] = [EntityKind::Token, EntityKind::Card, EntityKind::Bank];
const WORK: [Operation; 4] = [
    Operation::Create,
    Operation::Read,
    Operation::Search,
    Operation::Use,
];

/// How many different tokens a tenant has created, read, found or used since the month began, in UTC.
///
/// What this node did before is counted, even if it was noted a moment ago. A month's records are there
/// unless `audit.keep_days` is shorter.
pub async fn count_active_tokens(vault: &Vault, tenant: TenantId) -> Result<u64, storage::Error> {
    let _ = vault.audit.flush().await;
    let now = vault.audit.now().await?;
    let from = month_of(now);
    let kinds = TOKENS.map(|kind| kind as i16);
    let operations = WORK.map(|operation| operation as i16);
    let since = (&slots(from, now)[..], from);
    let count = store::count_entities(&vault.db, tenant, since, (&kinds, &operations)).await?;
    Ok(count.unsigned_abs())
}

/// The first moment of the month.
fn month_of(at: Timestamp) -> Timestamp {
    let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
    let first = first.to_zoned(TimeZone::UTC);
    first.map_or(at, |first| first.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_at_midnight_in_utc() {
        let cases = [
            ("2030-02-28T23:59:59.999999Z", "2030-02-01T00:00:00Z"),
            ("2030-03-01T00:00:00Z", "2030-03-01T00:00:00Z"),
            ("2030-12-31T23:00:00-05:00", "2031-01-01T00:00:00Z"),
        ];
        for (at, expected) in cases {
            let month = month_of(at.parse().unwrap());
            assert_eq!(month, expected.parse().unwrap(), "{at}");
        }
    }
}
