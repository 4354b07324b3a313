//! Settings of rate limits and concurrency limits.

use std::path::PathBuf;

use super::finding::Finding;
use super::network::Networks;
use super::section::section;
use super::setting::choice;

section! {
    /// Rate limits and concurrency limits. docs/operate/limits.md explains both.
    pub struct Limits in "limits" {
        /// Whether rate limits are enforced.
        pub enabled: bool = true,
        /// Which of the built-in rate limits apply.
        pub profile: LimitsProfile = LimitsProfile::Standard,
        /// TOML file with the table of rate limits, instead of the built-in table and its profile.
        pub file: Option<PathBuf> = None,
        /// Networks that are exempt from limits by client address, such as the network of your own servers behind one
        /// address. Limits by API key still apply to them.
        pub exempt_addresses: Networks = Networks::default(),
        /// Maximum number of requests that a node processes at a time, for all tenants together and not counting
        /// batched requests. One tenant gets at most three quarters of it; further requests are queued. If unset,
        /// `database.max_connections`.
        pub running_requests: Option<usize> = None,
        /// The same limit for batched requests, which create or read a single token. It is much higher than the number
        /// of connections, because one statement processes many of them.
        pub sharing_requests: usize = 96,
    }
}

impl Limits {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !self.enabled {
            let message = "is false: request rates are not limited";
            findings.push(Finding::warning("limits.enabled", message));
        }
    }
}

choice! {
    /// A choice of the built-in rate limits: `standard` has the rates of the API's specification, `own-hardware` exempts
    /// private applications and has no limit for an address alone.
    pub enum LimitsProfile {
        Standard = "standard",
        OwnHardware = "own-hardware",
    }
}
