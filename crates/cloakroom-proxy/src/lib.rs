//! The proxy: sends a request to a destination, with tokens replaced by their data.
//!
//! Reading order: [`invoke`] is the path of a proxied request, [`proxies`] the pre-configured proxies, [`transforms`] the
//! changes that a pre-configured proxy makes to requests and responses. [`exchange`] is what transforms see,
//! [`allowed_requests`] what callers of a pre-configured proxy may send; [`server`] is the context.

pub mod invoke;

pub mod transforms;

pub mod proxies;

pub mod allowed_requests;
pub mod definition;
pub mod exchange;
pub mod server;

use cloakroom_platform::storage::Statement;
pub use server::ProxyServer;
use utoipa_axum::router::OpenApiRouter;

/// Routes of management keys: the pre-configured proxies.
pub fn routes() -> OpenApiRouter<ProxyServer> {
    proxies::routes()
}

/// Routes that invoke a proxy. Their bodies are streamed, and a key is optional.
pub fn invocation_routes() -> OpenApiRouter<ProxyServer> {
    invoke::routes()
}

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    [proxies::STATEMENTS].into_iter().flatten().copied()
}
