//! Token settings.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const HOUR: u64 = 60 * 60;

section! {
    /// Tokens.
    pub struct Tokens in "tokens" {
        /// How long the id of a deleted token is reserved: a new token with this id is rejected with 409, so that a
        /// stored reference never points to other data. Set it to at least the age of the oldest backup. `0s` releases
        /// ids immediately, as in the hosted service. The ids of expired tokens are never reserved.
        pub deleted_id_retention: Duration = Duration::from_secs(365 * 24 * HOUR),
    }
}

impl Tokens {
    /// Whether the ids of deleted tokens are reserved.
    pub fn reserves_deleted_ids(&self) -> bool {
        !self.deleted_id_retention.is_zero()
    }

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !self.reserves_deleted_ids() {
            let message = "the id of a deleted token can be reused immediately: a stored reference may then point to \
                           another card";
            findings.push(Finding::warning("tokens.deleted_id_retention", message));
        }
    }
}
