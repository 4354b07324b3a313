//! Webhooks: endpoints that tenants register for events, and the delivery of these.
//!
//! Reading order: [`webhooks`] holds the endpoints, [`deliveries`] sends events to them and keeps the log,
//! [`signatures`] signs the requests, and [`public_keys`] publishes the keys. [`server`] is the context. Events are written by `cloakroom_core::events`.

pub mod deliveries;
pub mod public_keys;
pub mod webhooks;

pub mod server;

pub mod signatures;

use cloakroom_platform::storage::Statement;
pub use server::WebhookServer;
use utoipa_axum::router::OpenApiRouter;

/// Routes of management applications, which require a key.
pub fn routes() -> OpenApiRouter<WebhookServer> {
    webhooks::routes().merge(deliveries::routes())
}

/// Routes of receivers, which have no key.
pub fn open_routes() -> OpenApiRouter<WebhookServer> {
    public_keys::routes()
}

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    [
        webhooks::STATEMENTS,
        deliveries::STATEMENTS,
        deliveries::LOG_STATEMENTS,
        deliveries::MAINTENANCE_STATEMENTS,
        deliveries::RENEW_STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
