//! Settings of API key caching and permission rules.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

/// A deleted key must stop working on every node within this time, even if the notification is lost.
const KEY_CACHE_TTL_MAX: Duration = Duration::from_secs(5);

section! {
    /// Caching of API keys, and permission rules.
    pub struct Access in "access" {
        /// How long a key is cached without another database lookup. At most 5 seconds, because a deleted key must stop
        /// working within that time.
        pub key_cache_ttl: Duration = KEY_CACHE_TTL_MAX,
        /// Maximum number of cached keys.
        pub key_cache_size: usize = 10_000,
        /// Restores two rules of the hosted service for private applications: `token:update` alone may
        /// change the mask, fingerprint expression, search indexes and container of a token, and
        /// `token:create` alone may convert a token intent of another application. Each of these permissions is then
        /// sufficient to read the data of tokens that are not cards. A production node does not start with it.
        pub hosted_rules: bool = false,
    }
}

impl Access {
    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
        if KEY_CACHE_TTL_MAX < self.key_cache_ttl {
            let message = "must be at most 5s: a deleted key must stop working within that time";
            findings.push(Finding::error("access.key_cache_ttl", message));
        }
        if self.hosted_rules {
            let message = "private applications with token:update can change masks and search indexes, \
                           and thereby read data that their access rules mask";
            findings.push(match is_production {
                true => {
                    let message =
                        format!("{message}; remove it, because only test vaults start with it");
                    Finding::error("access.hosted_rules", message)
                }
                false => Finding::warning("access.hosted_rules", message),
            });
        }
    }
}
