//! Cloakroom, the library: every capability of the vault.
//!
//! Reading order: [`router`] lists the routes, [`vault`] what a running vault has, [`caller`] who is
//! asking; then the rooms, from the ones that answer requests down to the ones they stand on.

pub mod admin;
pub mod doctor;
pub mod doors;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod jobs;
pub mod openapi;
pub mod router;
pub mod server;

pub mod caller;
pub mod vault;

pub mod threeds_pages;

pub mod threeds;
pub mod threeds_browser;

pub mod enrichments;
pub mod erasures;
pub mod formulas;
pub mod reports;
pub mod threeds_requests;
pub mod token_documents;
pub mod token_queries;
pub mod tokens;

pub(crate) mod token_rows;

pub mod token_intents;

pub mod bins;
pub mod card_networks;
pub mod client_encryption;
pub mod containers;
pub mod security_codes;
pub mod token_attributes;
pub mod token_types;

pub mod applications;
pub mod members;
pub mod sessions;
pub mod tenants;

pub mod audit;
pub mod deprecations;
pub mod velocity;

pub mod access;
pub mod idempotency;
pub mod rate_limits;

pub mod convoy;
pub mod keys;
pub mod turnstile;

pub mod api;
mod card_numbers;
mod clock;
pub mod config;
pub mod ids;
pub mod storage;
pub mod telemetry;

pub use caller::Caller;
pub use vault::Vault;

/// Every SQL statement of the vault, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = storage::Statement> {
    [
        keys::STATEMENTS,
        audit::STATEMENTS,
        access::STATEMENTS,
        idempotency::STATEMENTS,
        rate_limits::STATEMENTS,
        applications::STATEMENTS,
        members::STATEMENTS,
        sessions::STATEMENTS,
        tenants::STATEMENTS,
        tenants::REMOVE_STATEMENTS,
        containers::STATEMENTS,
        security_codes::STATEMENTS,
        bins::STATEMENTS,
        card_networks::STATEMENTS,
        deprecations::STATEMENTS,
        client_encryption::STATEMENTS,
        token_intents::STATEMENTS,
        token_rows::STATEMENTS,
        token_rows::WRITE_STATEMENTS,
        token_rows::SHARED_STATEMENTS,
        token_rows::EXPIRED_STATEMENTS,
        token_queries::STATEMENTS,
        reports::STATEMENTS,
        threeds::STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
