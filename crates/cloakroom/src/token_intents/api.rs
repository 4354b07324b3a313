//! Token intents over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, IntentView, NewIntent};
use crate::access::Permission;
use crate::api::{Answer, ApiError, BaseUrl, JsonBody, PathId, Problem, format_utc};
use crate::bins::CardDetails;
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::token_attributes::base58;
use crate::token_intents as intents;
use crate::token_types::{BankDetails, TokenKind};
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_token_intent))
        .routes(routes!(find_token_intent, delete_token_intent))
}

/// Create a token intent.
///
/// Needs `token-intent:create`. The data waits to become a token, by `POST /tokens` or `POST /tokenize`
/// with `token_intent_id`, for as long as the tenant's quota says; then it is gone. It is never
/// returned.
#[utoipa::path(
    post,
    path = "/token-intents",
    tag = "Token intents",
    request_body(content = NewIntentBody<'_>, examples(
        ("card" = (summary = "A card", value = json!({
            "type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030,
                     "cvc": "123"}
        }))),
    )),
    responses(
        (status = 201, description = "The intent exists and is durable.", body = IntentBody<'_>,
         headers(("Location" = String, description = "Where the intent is."))),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 429, description = "Too many card numbers were tried.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_token_intent(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Before the body is looked at: a key without the permission learns nothing from the answer.
    caller.require_somewhere(Permission::TokenIntentCreate)?;
    let body = body?;
    let body: NewIntentBody<'_> = body.read()?;
    let new = NewIntent {
        kind: body.kind,
        data: body.data,
        encrypted: body.encrypted,
    };
    let reply = Reply::to(&caller, |created: &IntentView| {
        let location = format!("{base_url}/token-intents/{}", created.intent.id);
        Answer::created(location, &IntentBody::new(&caller, created))
    });
    let created = intents::create(&vault, &caller, new, &reply).await?;
    reply.answer(&created)
}

/// Read a token intent.
///
/// Needs `token-intent:read`. Its data is never returned.
#[utoipa::path(
    get,
    path = "/token-intents/{id}",
    tag = "Token intents",
    params(("id" = String, Path, description = "The intent's id.")),
    responses(
        (status = 200, description = "The intent.", body = IntentBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such intent.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_token_intent(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let found = intents::find(&vault, &caller, &id).await?;
    Answer::ok(&IntentBody::new(&caller, &found))
}

/// Delete a token intent.
///
/// Needs `token-intent:delete`. Nothing of its data is left.
#[utoipa::path(
    delete,
    path = "/token-intents/{id}",
    tag = "Token intents",
    params(("id" = String, Path, description = "The intent's id.")),
    responses(
        (status = 204, description = "The intent is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such intent.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn delete_token_intent(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    intents::delete(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// A token intent to create.
#[derive(Deserialize, ToSchema)]
struct NewIntentBody<'a> {
    /// What the data is; decides the rules for it. Every type but `network_token`.
    #[serde(rename = "type")]
    #[schema(value_type = TokenKind, required)]
    kind: Option<String>,
    /// Any JSON value but null that follows the rules of the type.
    #[serde(borrow)]
    #[schema(value_type = Value)]
    data: Option<&'a RawValue>,
    /// In place of `data`: it as a compact JWE (`ECDH-ES`, `A256GCM`) for a client encryption key.
    encrypted: Option<String>,
}

/// A token intent. Attributes without a value are left out.
#[derive(Serialize, ToSchema)]
struct IntentBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    #[serde(rename = "type")]
    #[schema(value_type = TokenKind)]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    card: Option<&'a CardDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bank: Option<&'a BankDetails>,
    /// That of a token with the same data, when its own fingerprint expression is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fingerprint: Option<String>,
    created_by: Uuid,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
}

impl<'a> IntentBody<'a> {
    fn new(caller: &Caller, view: &'a IntentView) -> Self {
        let intent = &view.intent;
        Self {
            id: intent.id,
            tenant_id: caller.tenant.uuid,
            kind: intent.kind.name(),
            card: view.details.card(),
            bank: view.details.bank(),
            fingerprint: intent.fingerprint.as_ref().map(base58),
            created_by: intent.created_by,
            created_at: format_utc(intent.created_at),
            expires_at: format_utc(intent.expires_at),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("Token intent not found."),
            Error::Velocity(error) => error.into(),
            Error::Unrecorded(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
