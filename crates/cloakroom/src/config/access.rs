//! Settings of how API keys are looked up.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

/// A deleted key must be dead on every node within this time, even if no notice arrives.
const KEY_CACHE_TTL_MAX: Duration = Duration::from_secs(5);

section! {
    /// How API keys are remembered between requests.
    pub struct Access in "access" {
        /// How long a key is trusted without asking the database: 5 seconds at most, because a
        /// deleted key stops working within that time.
        pub key_cache_ttl: Duration = KEY_CACHE_TTL_MAX,
        /// Keys remembered at a time.
        pub key_cache_size: usize = 10_000,
    }
}

impl Access {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if KEY_CACHE_TTL_MAX < self.key_cache_ttl {
            let message = "must be 5s or less: a deleted key stops working within that time";
            findings.push(Finding::error("access.key_cache_ttl", message));
        }
    }
}
