//! What every area of the service shares.
//!
//! Reading order, from the bottom: [`keys`] encrypts and signs, [`cryptoperiods`] knows the ages of keys, [`access`] holds principals and grants, [`idempotency`]
//! stored responses, [`deprecations`] the table of deprecated features. [`caller`] is one request of a principal.
//! [`events`] are what webhooks deliver; [`audit`] records changes and reads, and inserts their events. [`vault`] is the context of every operation. Above it are [`access_change`],
//! which changes rows that grant access, [`authentication`], [`rate_limits`] and [`velocity`]; [`gates`] is the middleware in front of the handlers.

pub mod gates;

pub mod access_change;
pub mod authentication;
pub mod public_storage;
pub mod rate_limits;
pub mod velocity;

pub mod vault;

pub mod audit;
pub mod caller;
pub mod current_keys;

pub mod access;
pub mod deprecations;
pub mod idempotency;

pub mod events;

pub mod cryptoperiods;
pub mod keys;

pub use caller::Caller;
use cloakroom_platform::storage::Statement;
pub use vault::Vault;

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    [
        keys::STATEMENTS,
        cryptoperiods::STATEMENTS,
        audit::STATEMENTS,
        events::STATEMENTS,
        access::STATEMENTS,
        access::STATE_STATEMENTS,
        idempotency::STATEMENTS,
        rate_limits::STATEMENTS,
        deprecations::STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
