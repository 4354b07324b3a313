//! Settings of how many requests are let in.

use std::path::PathBuf;

use super::network::Networks;
use super::section::section;

section! {
    /// How many requests are let in: by rate, and at a time. docs/operate/limits.md explains both.
    pub struct Limits in "limits" {
        /// Whether rates are limited at all.
        pub enabled: bool = true,
        /// TOML file with the table of limits, in place of the one that ships.
        pub file: Option<PathBuf> = None,
        /// Networks whose requests are not counted by address alone, such as the one of your own
        /// servers behind a single address. Counters that name a key go on counting them.
        pub exempt_addresses: Networks = Networks::default(),
        /// Requests of all tenants that a node works on at a time, not counting those that share
        /// statements; one tenant gets three quarters of it at most, and more wait in line. Without it,
        /// as many as `database.max_connections`.
        pub running_requests: Option<usize> = None,
        /// The same for requests that share statements: creates and reads of single tokens. Many more
        /// than there are connections, because each statement carries many of them.
        pub sharing_requests: usize = 96,
    }
}
