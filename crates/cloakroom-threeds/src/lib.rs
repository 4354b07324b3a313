//! EMV 3-D Secure: the 3DS server between merchants, cardholders' browsers and the directory servers of card networks.
//!
//! Reading order: [`sessions`] holds the sessions, [`browser`] the requests of issuers' pages and of the hosted
//! page, [`pages`] those pages, [`requests`] the fields of an authentication request, [`networks`]
//! the connections, [`card_testing`] the limits on declined cards. [`server`] is the context.

pub mod browser;

pub mod sessions;

pub mod server;

pub mod card_testing;
pub mod networks;
pub mod pages;
pub mod requests;

use cloakroom_platform::storage::Statement;
pub use server::ThreedsServer;
use utoipa_axum::router::OpenApiRouter;

/// Routes of merchants, which require a key.
pub fn routes() -> OpenApiRouter<ThreedsServer> {
    sessions::routes()
}

/// Routes of cardholders' browsers, which have no key.
pub fn browser_routes() -> OpenApiRouter<ThreedsServer> {
    browser::routes()
}

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    [networks::STATEMENTS, sessions::STATEMENTS]
        .into_iter()
        .flatten()
        .copied()
}
