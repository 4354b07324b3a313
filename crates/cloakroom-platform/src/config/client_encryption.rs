//! Settings of client encryption.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const DAY: u64 = 24 * 60 * 60;
/// The API limits the lifetime of a key to one year.
const LIFETIME_MAX: Duration = Duration::from_secs(365 * DAY);

section! {
    /// Client encryption keys (`POST /keys`) and the attribute `encrypted`.
    pub struct ClientEncryption in "client_encryption" {
        /// Lifetime of keys that are created without `expires_at`, at most `8760h` (one year).
        pub default_lifetime: Duration = Duration::from_secs(90 * DAY),
        /// Maximum age of an encrypted value whose JWE header has `iat`, the time of encryption. Older values are
        /// rejected, and so are values with an `iat` more than a minute in the future.
        pub iat_window: Duration = Duration::from_secs(5 * 60),
        /// Whether encrypted values without `iat` are rejected. The official clients do not send `iat`. A value without
        /// it can be replayed until its key expires.
        pub require_iat: bool = false,
    }
}

impl ClientEncryption {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if self.default_lifetime.is_zero() || LIFETIME_MAX < self.default_lifetime {
            let message = "must be more than 0s and at most 8760h";
            findings.push(Finding::error(
                "client_encryption.default_lifetime",
                message,
            ));
        }
        if self.iat_window.is_zero() {
            let message = "must be more than 0s";
            findings.push(Finding::error("client_encryption.iat_window", message));
        }
    }
}
