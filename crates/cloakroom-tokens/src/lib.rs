//! Tokens: creating, reading, changing, deleting and finding them, and everything that their data needs.
//!
//! Reading order: [`tokens`], then what uses tokens ([`queries`], [`documents`], [`enrichments`],
//! [`reports`]) and what tokens use ([`intents`], [`attributes`], [`types`], [`client_encryption`],
//! [`security_codes`], [`containers`], [`search_expressions`], [`fingerprint_pairs`], [`bins`]). [`data_vault`] and [`tokens::TokenVault`] are the contexts.

pub mod documents;
pub mod enrichments;
pub mod queries;
pub mod reports;

pub mod tokens;

pub mod intents;

pub mod client_encryption;
pub mod data_vault;

pub mod attributes;

pub mod bins;
pub mod containers;
pub mod fingerprint_pairs;
pub mod search_expressions;
pub mod security_codes;
pub mod types;

use cloakroom_platform::storage::Statement;
pub use tokens::TokenVault;
use utoipa_axum::router::OpenApiRouter;

/// The routes of this area.
pub fn routes() -> OpenApiRouter<TokenVault> {
    tokens::routes()
        .merge(queries::routes())
        .merge(documents::routes())
        .merge(intents::routes())
        .merge(enrichments::routes())
        .merge(client_encryption::routes())
        .merge(reports::routes())
}

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    [
        containers::STATEMENTS,
        search_expressions::STATEMENTS,
        fingerprint_pairs::STATEMENTS,
        security_codes::STATEMENTS,
        bins::STATEMENTS,
        client_encryption::STATEMENTS,
        intents::STATEMENTS,
        tokens::STATEMENTS,
        tokens::READER_STATEMENTS,
        tokens::INSERT_STATEMENTS,
        tokens::UPDATE_STATEMENTS,
        tokens::DELETE_STATEMENTS,
        tokens::EXPIRED_STATEMENTS,
        tokens::HISTORY_STATEMENTS,
        tokens::RESEAL_STATEMENTS,
        tokens::REDIGEST_STATEMENTS,
        tokens::CLAIM_STATEMENTS,
        tokens::IMPORT_STATEMENTS,
        tokens::EXPORT_STATEMENTS,
        queries::STATEMENTS,
        reports::STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
