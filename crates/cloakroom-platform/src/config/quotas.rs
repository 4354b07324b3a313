//! Default quotas, for tenants without their own.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const TOKENS_MAX: usize = 1_000;
const CARD_VELOCITY_MAX: usize = 1_000;
/// The limit of an application with much traffic, by the default of ten.
const CARD_VELOCITY_USUAL: usize = 33;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Three months stay online; the tables have partitions for a few more days.
const LOG_RETENTION_MAX: Duration = Duration::from_secs(92 * 24 * 60 * 60);
const INTENT_RETENTION_MAX: Duration = Duration::from_secs(48 * 60 * 60);
const INTENT_RETENTION_MIN: Duration = Duration::from_secs(1);

section! {
    /// Default quotas of tenants. `cloakroom tenant quota` changes them for one tenant. Over HTTP, a tenant can lower
    /// but not raise its rate limit, card velocity limit and security code retention, disable but not enable 3-D
    /// Secure, and raise but not lower its log retention.
    pub struct Quotas in "quotas" {
        /// Maximum number of tokens that one `POST /tokenize` creates, at most 1000.
        pub tokenize: usize = 5,
        /// Maximum number of expressions in one `POST /detokenize`, at most 1000.
        pub detokenize: usize = 5,
        /// How long `GET /logs` returns audit entries: from 1 hour to 2208 hours (92 days).
        pub log_retention: Duration = 24 * HOUR,
        /// Lifetime of token intents: from 1 second to 48 hours.
        pub token_intent_retention: Duration = 24 * HOUR,
        /// Maximum number of different card numbers with the same first six and last four digits that one application
        /// may send within an hour, at most 1000. The same limit applies to bank account, routing, social security and
        /// employer identification numbers with the same last four digits. The limit grows for an application that
        /// sends more than 7,000 different numbers of one BIN in an hour. Card enumeration needs hundreds.
        pub card_velocity: usize = 10,
        /// Whether tenants may use 3-D Secure.
        pub threeds: bool = false,
    }
}

impl Quotas {
    /// Valid range of the token quotas, for operators and tenants alike.
    pub const TOKENS: std::ops::RangeInclusive<usize> = 1..=TOKENS_MAX;
    pub const CARD_VELOCITY: std::ops::RangeInclusive<usize> = 1..=CARD_VELOCITY_MAX;
    pub const LOG_RETENTION: std::ops::RangeInclusive<Duration> = HOUR..=LOG_RETENTION_MAX;
    pub const TOKEN_INTENT_RETENTION: std::ops::RangeInclusive<Duration> =
        INTENT_RETENTION_MIN..=INTENT_RETENTION_MAX;

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        for (location, quota) in [
            ("quotas.tokenize", self.tokenize),
            ("quotas.detokenize", self.detokenize),
        ] {
            if !Self::TOKENS.contains(&quota) {
                findings.push(Finding::error(location, "must be from 1 to 1000"));
            }
        }
        if !Self::CARD_VELOCITY.contains(&self.card_velocity) {
            let message = "must be from 1 to 1000";
            findings.push(Finding::error("quotas.card_velocity", message));
        }
        if self.card_velocity > CARD_VELOCITY_USUAL {
            let message = "above 33, enumeration becomes practical: each application of every tenant can try this many numbers \
                           per hour for a card whose first and last digits it knows; raise the quota of one tenant instead, \
                           `cloakroom tenant quota --tenant TENANT card_velocity_limit=NUMBER`";
            findings.push(Finding::warning("quotas.card_velocity", message));
        }
        if !Self::LOG_RETENTION.contains(&self.log_retention) {
            let message = "must be from 1h to 2208h (92 days)";
            findings.push(Finding::error("quotas.log_retention", message));
        }
        if !Self::TOKEN_INTENT_RETENTION.contains(&self.token_intent_retention) {
            let message = "must be from 1s to 48h";
            findings.push(Finding::error("quotas.token_intent_retention", message));
        }
    }
}
