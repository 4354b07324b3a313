//! Tokenizing and detokenizing over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Error, Tokenized};
use crate::access::Permission;
use crate::api::{Answer, ApiError, JsonBody, Problem};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::token_documents as documents;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(tokenize))
        .routes(routes!(detokenize))
}

/// Tokenize a document.
///
/// Needs `token:create` in the container of every token. Every string, number and boolean becomes a
/// token of the type `token` and is replaced by its id; an object with `type` and `data` becomes that
/// token and is replaced by it. All tokens are created or none.
#[utoipa::path(
    post,
    path = "/tokenize",
    tag = "Tokens",
    request_body(content = Value, examples(
        ("customer" = (summary = "Two values and a card", value = json!({
            "name": "Ada Lovelace",
            "card": {"type": "card", "data": {"number": "4242424242424242"}},
            "tags": ["vip"]
        }))),
    )),
    responses(
        (status = 200, description = "The document with tokens in it.", body = Value),
        (status = 400, description = "A value breaks a rule, or there are too many.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 409, description = "An id is taken.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 429, description = "Too many card numbers were tried.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn tokenize(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::TokenCreate)?;
    let body = body?;
    let document: Value = body.read_any()?;
    let reply = Reply::to(&caller, |tokenized: &Tokenized| {
        Answer::ok(&tokenized.body(&caller))
    });
    let tokenized = documents::tokenize(&vault, &caller, &document, &reply).await?;
    reply.answer(&tokenized)
}

/// Detokenize a document.
///
/// Needs `token:read` on every token that the document refers to. `{{ ID }}` stands for the data of a
/// token and `{{ token: ID }}` for the token, both as a read would show them, and filters may follow.
#[utoipa::path(
    post,
    path = "/detokenize",
    tag = "Tokens",
    request_body(content = Value, examples(
        ("card" = (summary = "A part of a card, and text around it", value = json!({
            "number": "{{ 9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d | json: '$.number' }}",
            "note": "ends in {{ 9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d | json: '$.number' | last4 }}"
        }))),
    )),
    responses(
        (status = 200, description = "The document with values in it.", body = Value),
        (status = 400, description = "An expression is wrong, names no token, or is one too many.",
         body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission for a token.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn detokenize(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::TokenRead)?;
    let body = body?;
    let document: Value = body.read_any()?;
    let filled = documents::detokenize(&vault, &caller, &document).await?;
    Answer::ok(&filled)
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Unknown(ids) => {
                let detail = format!("Failed to detokenize some tokens: {}", ids.join(", "));
                Self::bad_request("Invalid detokenize request", detail)
            }
            Error::Tokens(error) => error.into(),
            Error::Keys(error) => error.into(),
        }
    }
}
