//! Settings of how much a tenant may use, where it has no quota of its own.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const TOKENS_MAX: usize = 1_000;
const CARD_VELOCITY_MAX: usize = 1_000;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Three months stay online; the tables have room for a few days more.
const LOG_RETENTION_MAX: Duration = Duration::from_secs(92 * 24 * 60 * 60);
const INTENT_RETENTION_MAX: Duration = Duration::from_secs(48 * 60 * 60);
const SHORTEST: Duration = Duration::from_secs(1);

section! {
    /// How much a tenant may use. `cloakroom tenant quota` gives one tenant more or less.
    pub struct Quotas in "quotas" {
        /// Tokens that one `POST /tokenize` may create, up to 1000.
        pub tokenize: usize = 5,
        /// Expressions that one `POST /detokenize` may hold, up to 1000.
        pub detokenize: usize = 5,
        /// How long `GET /logs` shows what happened: from 1 hour to 2208 hours (92 days).
        pub log_retention: Duration = 24 * HOUR,
        /// How long a token intent can be used: from 1 second to 48 hours.
        pub token_intent_retention: Duration = 24 * HOUR,
        /// Different card numbers with the same first six and last four digits that one application
        /// may send within an hour, up to 1000. Whoever guesses at a card that the vault shows in part
        /// needs hundreds.
        pub card_velocity: usize = 10,
        /// Whether tenants may use 3-D Secure.
        pub threeds: bool = false,
    }
}

impl Quotas {
    /// What a quota may be, whoever sets it.
    pub const TOKENS: std::ops::RangeInclusive<usize> = 1..=TOKENS_MAX;
    pub const CARD_VELOCITY: std::ops::RangeInclusive<usize> = 1..=CARD_VELOCITY_MAX;
    pub const LOG_RETENTION: std::ops::RangeInclusive<Duration> = HOUR..=LOG_RETENTION_MAX;
    pub const TOKEN_INTENT_RETENTION: std::ops::RangeInclusive<Duration> =
        SHORTEST..=INTENT_RETENTION_MAX;

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        for (place, quota) in [
            ("quotas.tokenize", self.tokenize),
            ("quotas.detokenize", self.detokenize),
        ] {
            if !Self::TOKENS.contains(&quota) {
                findings.push(Finding::error(place, "must be from 1 to 1000"));
            }
        }
        if !Self::CARD_VELOCITY.contains(&self.card_velocity) {
            let message = "must be from 1 to 1000";
            findings.push(Finding::error("quotas.card_velocity", message));
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
