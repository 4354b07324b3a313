//! HTTP interface of tokenization and detokenization.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, JsonBody, Problem, ReadErrors, WriteErrors,
};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Error, TokenizedDocument};
use crate::documents;
use crate::tokens::TokenVault;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(tokenize))
        .routes(routes!(detokenize))
}

/// Tokenize a document.
///
/// Requires `token:create` in the container of every token. Every string, number and boolean is replaced with the id
/// of a new token of the type `token`. An object with `type` and `data` is replaced with the token that it describes.
/// Tokens are created atomically.
#[utoipa::path(
    post, path = "/tokenize", tag = "Tokens",
    request_body = Value,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The document with its values replaced by tokens.", body = Value),
        (status = 400, description = "A value is invalid, or there are too many.", body = Problem),
        (status = 409, description = "An id is in use or reserved.", body = Problem),
        (status = 429, description = "Too many invalid card numbers were sent.", body = Problem),
    ),
)]
async fn tokenize(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::TokenCreate)?;
    let body = body?;
    vault.public_storage.admit(&caller, body.size()).await?;
    let document: Value = body.read_any()?;
    let template = caller
        .response_template(|tokenized: &TokenizedDocument| Answer::ok(&tokenized.body(&caller)));
    let tokenized = documents::tokenize(&vault, &caller, &document, &template).await?;
    template.render(&tokenized)
}

/// Detokenize a document.
///
/// Requires `token:read` on every token that the document refers to. `{{ ID }}` is replaced with the data of a token
/// and `{{ token: ID }}` with the token, both as a read returns them. Filters may follow. `{{ token_intent: ID }}` is
/// replaced with a token intent and its data; it also requires `token-intent:read`, and `token:read` with the transform
/// `reveal` in the default container of the intent's type.
#[utoipa::path(
    post, path = "/detokenize", tag = "Tokens",
    request_body = Value,
    responses(
        ReadErrors, BodyErrors,
        (status = 200, description = "The document with its expressions replaced by values.", body = Value),
        (status = 400, description = "An expression is invalid or refers to no token, or there are too many.",
         body = Problem),
        (status = 403, description = "The API key lacks the permission for a token.", body = Problem),
    ),
)]
async fn detokenize(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::TokenRead)?;
    let body = body?;
    let document: Value = body.read_any()?;
    let filled = documents::detokenize(&vault, &caller, &document).await?;
    Answer::ok(&filled)
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Unknown(ids) => {
                let detail = format!("Failed to detokenize some tokens: {}", ids.join(", "));
                Self::bad_request("Invalid detokenize request", detail)
            }
            Error::Tokens(error) => error.into(),
            Error::Intents(error) => error.into(),
            Error::Audit(error) => error.into(),
            Error::Keys(error) => error.into(),
        }
    }
}
