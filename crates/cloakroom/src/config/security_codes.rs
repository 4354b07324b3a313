//! Settings of how long security codes are kept.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const SHORTEST: Duration = Duration::from_secs(1);
const RETENTION_MAX: Duration = Duration::from_secs(48 * 60 * 60);
/// A code is promised to be unrecoverable eleven minutes after its retention.
const EPOCH_MAX: Duration = Duration::from_secs(10 * 60);

section! {
    /// How long the security code of a card (`cvc`) is kept.
    pub struct SecurityCodes in "security_codes" {
        /// How long a code can be read after it was stored: from 1 second to 48 hours.
        pub retention: Duration = Duration::from_secs(60 * 60),
        /// How long one key seals codes, 10 minutes at most. The key is destroyed when the last of
        /// its codes has reached its retention; from then on no backup helps.
        pub epoch: Duration = EPOCH_MAX,
    }
}

impl SecurityCodes {
    /// What a retention may be, whoever sets it.
    pub const RETENTION: std::ops::RangeInclusive<Duration> = SHORTEST..=RETENTION_MAX;

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !Self::RETENTION.contains(&self.retention) {
            let message = "must be from 1s to 48h";
            findings.push(Finding::error("security_codes.retention", message));
        }
        if !(SHORTEST..=EPOCH_MAX).contains(&self.epoch) {
            let message = "must be from 1s to 10m: a key outlives the retention by that time";
            findings.push(Finding::error("security_codes.epoch", message));
        }
    }
}
