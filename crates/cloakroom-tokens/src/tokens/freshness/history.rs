//! Compares the rows of tokens with the audit log: finds rows that SQL rolled back, undeleted, inserted or deleted.
//!
//! Every write of a token has an audit log entry of the same time as its row, and the data is bound to that time. A row
//! that is older than the last entry of its token was restored; changing its time makes it undecryptable.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use cloakroom_core::audit::Operation;
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage::{Error, connect_once};
use futures_util::TryStreamExt as _;
use jiff::Timestamp;

use crate::tokens::store::{self, TokenHistory};

/// Findings beyond this are only counted.
const FINDINGS_MAX: usize = 100;
/// Tokens between two calls of `progress`.
const PROGRESS: u64 = 100_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// An entry that is planned before midnight and written after it gets the time of midnight.
const MIDNIGHT_DELAY_MAX: Duration = Duration::from_secs(10 * 60);
/// Clocks of nodes differ slightly: a token can take the id of an expired one that another node deletes.
const EXPIRY_SKEW_MAX: Duration = Duration::from_secs(5);

/// How a row differs from its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The last entry of the token is its deletion or expiry.
    Undeleted,
    /// The last entry of the token is a later write.
    Older,
    /// The last entry of the token is a write, and there is no row.
    Missing,
    /// The row was written within the retention of the audit log, which has no entry of that write.
    Unrecorded,
}

/// A token whose row does not match its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFinding {
    pub tenant_number: i32,
    pub token_id: String,
    pub difference: Difference,
}

impl fmt::Display for HistoryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.difference {
            Difference::Undeleted => "exists although its last entry is its deletion",
            Difference::Older => "is older than its last entry",
            Difference::Missing => "does not exist although no entry records its deletion",
            Difference::Unrecorded => "was written without an entry",
        };
        let Self {
            tenant_number,
            token_id,
            ..
        } = self;
        write!(f, "tenant number {tenant_number}, token {token_id}: {what}")
    }
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct HistoryReport {
    pub tokens: u64,
    /// The first hundred.
    pub findings: Vec<HistoryFinding>,
    pub finding_count: u64,
}

/// Which tokens are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Up to this many before and after a random place.
    Sample(u32),
}

/// Compares tokens of all tenants with the audit log, in one snapshot and with bounded memory.
///
/// The log itself must verify: this trusts its entries.
pub async fn verify_histories(
    vault: &Vault,
    scope: Scope,
    mut progress: impl FnMut(u64),
) -> Result<HistoryReport, Error> {
    let now = vault.clock.now().await?;
    let days = u32::try_from(vault.config.audit.keep_days.saturating_sub(1)).unwrap_or(u32::MAX);
    let recorded_since = now.checked_sub(DAY * days).unwrap_or(Timestamp::UNIX_EPOCH);
    // The pool's deadlines are too short for all tokens.
    let connection = connect_once(&vault.config.database).await?;
    let rows = store::stream_histories(&connection, scope).await?;
    let mut rows = pin!(rows);
    let mut report = HistoryReport::default();
    while let Some(history) = rows.try_next().await? {
        report.tokens += u64::from(history.written_at.is_some());
        if report.tokens.is_multiple_of(PROGRESS) {
            progress(report.tokens);
        }
        if let Some(difference) = compare(&history, recorded_since) {
            report.finding_count += 1;
            if report.findings.len() < FINDINGS_MAX {
                report.findings.push(HistoryFinding {
                    tenant_number: history.tenant_number,
                    token_id: history.token_id,
                    difference,
                });
            }
        }
    }
    Ok(report)
}

/// Compares a row with the last entry of its token.
fn compare(history: &TokenHistory, recorded_since: Timestamp) -> Option<Difference> {
    const DELETE: i16 = Operation::Delete as i16;
    const EXPIRE: i16 = Operation::Expire as i16;
    let Some(written_at) = history.written_at else {
        let is_deleted = matches!(history.last_entry, Some((DELETE | EXPIRE, _)));
        return (!is_deleted).then_some(Difference::Missing);
    };
    let is_recent = recorded_since <= written_at;
    let unrecorded = is_recent.then_some(Difference::Unrecorded);
    let Some((operation, at)) = history.last_entry else {
        return unrecorded;
    };
    let is_later_by =
        |tolerance: Duration| at.duration_since(written_at).unsigned_abs() > tolerance;
    match operation {
        DELETE if written_at <= at => Some(Difference::Undeleted),
        EXPIRE if written_at <= at && is_later_by(EXPIRY_SKEW_MAX) => Some(Difference::Undeleted),
        EXPIRE if written_at <= at => None,
        DELETE | EXPIRE => unrecorded,
        _ if written_at == at => None,
        _ if written_at > at => unrecorded,
        _ => {
            let is_midnight = at.as_microsecond() % 86_400_000_000 == 0;
            let is_delayed = is_midnight && !is_later_by(MIDNIGHT_DELAY_MAX);
            (!is_delayed).then_some(Difference::Older)
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn rows_are_compared_with_the_last_entry_of_their_token() {
        use Difference::{Missing, Older, Undeleted, Unrecorded};
        use Operation::{Create, Delete, Expire, Update};
        let midnight = Timestamp::from_second(1_699_920_000).unwrap();
        let noon = midnight + SignedDuration::from_hours(12);
        let second = SignedDuration::from_secs(1);
        let minute = SignedDuration::from_mins(1);
        let micro = SignedDuration::from_micros(1);
        let cases = [
            (noon, Some((Create, noon)), None),
            (noon, Some((Update, noon)), None),
            (noon, Some((Update, noon + micro)), Some(Older)),
            (noon, Some((Update, noon + minute)), Some(Older)),
            (noon, Some((Create, noon - micro)), Some(Unrecorded)),
            (noon, Some((Delete, noon + micro)), Some(Undeleted)),
            (noon, Some((Delete, noon - micro)), Some(Unrecorded)),
            (noon, Some((Expire, noon + minute)), Some(Undeleted)),
            (noon, Some((Expire, noon + second)), None),
            (noon, None, Some(Unrecorded)),
            // Before the retention of the log, in which the later entries are.
            (midnight - minute * 2_880, None, None),
            (midnight - minute * 2_880, Some((Update, noon)), Some(Older)),
            (
                midnight - minute * 2_880,
                Some((Delete, noon)),
                Some(Undeleted),
            ),
            // Written across midnight.
            (midnight - second, Some((Update, midnight)), None),
            (
                midnight - minute * 11,
                Some((Update, midnight)),
                Some(Older),
            ),
            (midnight - second, Some((Delete, midnight)), Some(Undeleted)),
        ];
        for (written_at, last_entry, expected) in cases {
            let history = TokenHistory {
                tenant_number: 1,
                token_id: "a".to_owned(),
                written_at: Some(written_at),
                last_entry: last_entry.map(|(operation, at)| (operation as i16, at)),
            };
            let difference = compare(&history, midnight - minute * 1_440);
            assert_eq!(difference, expected, "{written_at} {last_entry:?}");
        }
        for (operation, expected) in [
            (Create, Some(Missing)),
            (Update, Some(Missing)),
            (Delete, None),
            (Expire, None),
        ] {
            let history = TokenHistory {
                tenant_number: 1,
                token_id: "a".to_owned(),
                written_at: None,
                last_entry: Some((operation as i16, noon)),
            };
            assert_eq!(compare(&history, midnight), expected, "{operation:?}");
        }
    }
}
