//! Tokens over HTTP: wire shapes, handlers, and the status of each failure.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::card::CardDetails;
use super::{Error, NewToken, Privacy, TokenView};
use crate::access::Permission;
use crate::api::{
    Answer, ApiError, BaseUrl, Broken, JsonBody, PathId, Problem, format_at_offset, format_utc,
};
use crate::caller::Caller;
use crate::tokens;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_token))
        .routes(routes!(find_token, delete_token))
}

/// Create a token.
///
/// Needs `token:create` in the token's container. The data comes back as that grant shows it.
#[utoipa::path(
    post,
    path = "/tokens",
    tag = "Tokens",
    request_body = NewTokenBody<'_>,
    responses(
        (status = 201, description = "The token exists and is durable.", body = TokenBody<'_>,
         headers(("Location" = String, description = "Where the token is."))),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 409, description = "The id is taken.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_token(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Before the body is looked at: a key without the permission learns nothing from the answer.
    caller.require_somewhere(Permission::TokenCreate)?;
    let body = body?;
    let new: NewTokenBody<'_> = body.read()?;
    let created = tokens::create(&vault, &caller, new.try_into()?).await?;
    let location = format!("{base_url}/tokens/{}", created.token.id);
    let mut body = TokenBody::new(&caller, &created);
    body.extras = Some(Extras {
        deduplicated: false,
    });
    Answer::created(&location, &body)
}

/// Read a token.
///
/// Needs `token:read` in the token's container. The data comes back as that grant shows it.
#[utoipa::path(
    get,
    path = "/tokens/{id}",
    tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses(
        (status = 200, description = "The token.", body = TokenBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 404, description = "No such token.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_token(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let found = tokens::find(&vault, &caller, &id).await?;
    Answer::ok(&TokenBody::new(&caller, &found))
}

/// Delete a token.
///
/// Needs `token:delete` in the token's container. The data cannot be recovered.
#[utoipa::path(
    delete,
    path = "/tokens/{id}",
    tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses(
        (status = 204, description = "The token is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 404, description = "No such token.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn delete_token(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    tokens::delete(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// A token to create.
#[derive(Deserialize, ToSchema)]
struct NewTokenBody<'a> {
    /// A UUID of your own; without it, one is made.
    id: Option<String>,
    /// `token` or `card`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Any JSON value; for `card`, an object with a `number`.
    #[serde(borrow)]
    #[schema(value_type = Value)]
    data: Option<&'a RawValue>,
    /// What readers without the right to reveal see in place of the data.
    mask: Option<Value>,
    /// Exactly one path, such as `/pci/high/`; without it, the type's own.
    containers: Option<Vec<String>>,
    /// Deprecated: names the container when `containers` does not.
    privacy: Option<PrivacyBody>,
    /// Clear strings beside the data; an entry that is null is dropped.
    metadata: Option<Map<String, Value>>,
    /// ISO 8601, or `month/day/year` with an optional time and offset.
    expires_at: Option<String>,
    #[schema(ignore)]
    search_indexes: Option<Vec<Value>>,
    #[schema(ignore)]
    fingerprint_expression: Option<String>,
    #[schema(ignore)]
    deduplicate_token: Option<bool>,
    #[schema(ignore)]
    token_intent_id: Option<String>,
    #[schema(ignore)]
    encrypted: Option<String>,
}

/// Deprecated: `/<classification>/<impact_level>/`, each with the type's own as default.
#[derive(Deserialize, ToSchema)]
struct PrivacyBody {
    /// `general`, `bank`, `pci` or `pii`.
    classification: Option<String>,
    /// `low`, `moderate` or `high`.
    impact_level: Option<String>,
}

impl<'a> TryFrom<NewTokenBody<'a>> for NewToken<'a> {
    type Error = ApiError;

    /// Attributes that this version cannot honour are refused: ignoring them would mislead.
    fn try_from(body: NewTokenBody<'a>) -> Result<Self, ApiError> {
        let asked = [
            (
                "search_indexes",
                body.search_indexes.is_some_and(|list| !list.is_empty()),
            ),
            (
                "fingerprint_expression",
                body.fingerprint_expression.is_some(),
            ),
            ("deduplicate_token", body.deduplicate_token == Some(true)),
            ("token_intent_id", body.token_intent_id.is_some()),
            ("encrypted", body.encrypted.is_some()),
        ];
        let refused: Vec<Broken> = asked
            .into_iter()
            .filter(|(_, asked)| *asked)
            .map(|(name, _)| Broken::new(name, "is not supported by this version"))
            .collect();
        if !refused.is_empty() {
            return Err(ApiError::all_invalid(refused));
        }
        Ok(Self {
            id: body.id,
            kind: body.kind,
            data: body.data,
            mask: body.mask,
            containers: body.containers,
            privacy: body.privacy.map(|privacy| Privacy {
                classification: privacy.classification,
                impact_level: privacy.impact_level,
            }),
            metadata: body.metadata,
            expires_at: body.expires_at,
        })
    }
}

/// A token as its caller may see it. Attributes without a value are left out.
#[derive(Serialize, ToSchema)]
struct TokenBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Redacted (absent), masked or revealed, as the caller's grants say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    data: Option<&'a RawValue>,
    /// The mask expressions, not the masked data.
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<&'a CardDetails>,
    containers: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    metadata: Option<&'a RawValue>,
    search_indexes: [String; 0],
    created_by: Uuid,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(rename = "_extras", skip_serializing_if = "Option::is_none")]
    extras: Option<Extras>,
}

#[derive(Serialize, ToSchema)]
struct Extras {
    /// Whether an existing token was returned instead of a new one.
    deduplicated: bool,
}

impl<'a> TokenBody<'a> {
    fn new(caller: &Caller, view: &'a TokenView) -> Self {
        let token = &view.token;
        let mask = match &token.mask {
            Some(text) => serde_json::from_str(text).ok(),
            None => token.kind.default_mask().map(|mask| mask.shown.clone()),
        };
        Self {
            id: token.id,
            tenant_id: caller.tenant.uuid,
            kind: token.kind.name(),
            data: view.shown.data.as_deref(),
            mask,
            card: view.shown.card.as_ref(),
            containers: [token.container.as_str()],
            metadata: token
                .metadata
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
            search_indexes: [],
            created_by: token.created_by,
            created_at: format_utc(token.created_at),
            modified_by: token.modified_by,
            modified_at: token.modified_at.map(format_utc),
            expires_at: token
                .expiry
                .map(|expiry| format_at_offset(expiry.at, expiry.offset_minutes)),
            extras: None,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("Token not found."),
            Error::IdTaken => Self::conflict("A token with this id exists."),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
