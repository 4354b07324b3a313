//! Settings of security code retention.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const DURATION_MIN: Duration = Duration::from_secs(1);
const RETENTION_MAX: Duration = Duration::from_secs(48 * 60 * 60);
/// A code is guaranteed to be unrecoverable eleven minutes after its retention ends.
const EPOCH_MAX: Duration = Duration::from_secs(10 * 60);

section! {
    /// Retention of card security codes (`cvc`).
    pub struct SecurityCodes in "security_codes" {
        /// How long a code is readable after it was stored: from 1 second to 48 hours.
        pub retention: Duration = Duration::from_secs(60 * 60),
        /// How long one key encrypts new codes, at most 10 minutes. The key is destroyed when the retention of its last
        /// code ends. After that, the codes cannot be recovered, not even from a backup.
        pub epoch: Duration = EPOCH_MAX,
    }
}

impl SecurityCodes {
    /// Valid range of the retention, for operators and tenants alike.
    pub const RETENTION: std::ops::RangeInclusive<Duration> = DURATION_MIN..=RETENTION_MAX;

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !Self::RETENTION.contains(&self.retention) {
            let message = "must be from 1s to 48h";
            findings.push(Finding::error("security_codes.retention", message));
        }
        if !(DURATION_MIN..=EPOCH_MAX).contains(&self.epoch) {
            let message = "must be from 1s to 10m: a key can exist for this long after the retention of a code";
            findings.push(Finding::error("security_codes.epoch", message));
        }
    }
}
