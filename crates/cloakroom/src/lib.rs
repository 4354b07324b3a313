//! The Cloakroom library: all features of the token vault.
//!
//! Reading order: [`router`] lists the routes, [`vault`] the components of a running vault,
//! [`caller`] the authenticated caller; then the modules, from those that handle requests down to
//! those they depend on.

pub mod admin;
pub mod crypto_inventory;
mod database_check;
pub mod doctor;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod job_times;
pub mod jobs;
pub mod measurements;
pub mod node;
pub mod openapi;
pub mod removed_operations;
pub mod rotation;
pub mod route_requirements;
pub mod router;
pub mod server;
pub mod sinks;
pub mod transfer;

pub mod erasures;
pub mod formulas;

pub use cloakroom_core::{
    Caller, Vault, access, access_change, audit, authentication, caller, cryptoperiods,
    deprecations, events, gates, idempotency, keys, rate_limits, vault, velocity,
};
pub use cloakroom_management::{applications, logs, members, sessions, tenants};
/// Hosted pages and the hosted card form.
pub use cloakroom_pages as pages;
/// What programs that run the service need of the platform.
pub use cloakroom_platform::{api, config, ids, storage, telemetry};
/// Proxied requests.
pub use cloakroom_proxy as proxy;
/// The 3DS server.
pub use cloakroom_threeds as threeds;
pub use cloakroom_tokens::{bins, client_encryption, security_codes, tokens, types as token_types};
/// Webhooks and the delivery of events.
pub use cloakroom_webhooks as webhooks;
pub use node::Node;

/// All SQL statements of the vault, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = storage::Statement> {
    let platform = storage::STATEMENTS.iter().copied();
    platform
        .chain(cloakroom_core::statements())
        .chain(cloakroom_management::statements())
        .chain(cloakroom_tokens::statements())
        .chain(cloakroom_pages::statements())
        .chain(cloakroom_threeds::statements())
        .chain(cloakroom_proxy::statements())
        .chain(cloakroom_webhooks::statements())
        .chain(rotation::STATEMENTS.iter().copied())
        .chain(rotation::SCAN_STATEMENTS.iter().copied())
        .chain(rotation::MAC_STATEMENTS.iter().copied())
        .chain(transfer::statements())
}
