//! Cryptoperiods of keys.

use std::time::Duration;

use super::section::section;

section! {
    /// How long a key of each purpose may be in use before it must be rotated (PCI DSS 3.7.4). `cloakroom doctor` warns
    /// after 80 % of a period and fails after all of it. The defaults are within NIST SP 800-57 Part 1.
    pub struct Cryptoperiods in "cryptoperiods" {
        /// Rotate `tenant_kek`, `data`, `index`, `reply`, `request`, `control`, `audit_authority` and `security_code_wrap`
        /// keys without an operator after 80 % of their period. Old versions remain until an operator runs `cloakroom key retire`.
        pub automatic: bool = false,
        /// The root key, which wraps the keys of tenants and of the vault.
        pub root_kek: Duration = years(1),
        /// Key-encryption keys of tenants.
        pub tenant_kek: Duration = years(2),
        /// Keys that encrypt the data of tokens.
        pub data: Duration = years(1),
        /// Keys of fingerprints.
        pub fingerprint: Duration = years(2),
        /// Keys of search indexes.
        pub index: Duration = years(2),
        /// Keys that encrypt the responses stored for idempotency keys.
        pub reply: Duration = years(1),
        /// Keys that authenticate requests with idempotency keys.
        pub request: Duration = years(2),
        /// The key that authenticates rows that grant permissions, and events.
        pub control: Duration = years(2),
        /// The key pair that certifies the keys with which nodes sign the audit log.
        pub audit_authority: Duration = years(3),
        /// The key pair that signs webhook deliveries.
        pub signing: Duration = years(2),
        /// The key that wraps the keys of security codes.
        pub security_code_wrap: Duration = years(2),
    }
}

const fn years(count: u64) -> Duration {
    Duration::from_secs(count * 365 * 24 * 60 * 60)
}
