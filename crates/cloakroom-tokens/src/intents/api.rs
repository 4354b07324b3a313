//! HTTP interface of token intents.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRef, State};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, HasHttpConfig, JsonBody, PathId, Problem, ReadErrors,
    WriteErrors, format_utc,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, IntentView, NewIntent};
use crate::attributes::{base58, may_compare};
use crate::bins::CardDetails;
use crate::data_vault::DataVault;
use crate::intents;
use crate::types::{BankDetails, TokenKind};

/// The routes of this module.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: HasHttpConfig + Clone + Send + Sync + 'static,
    DataVault: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(create_token_intent))
        .routes(routes!(find_token_intent, delete_token_intent))
}

/// Create a token intent.
///
/// Requires `token-intent:create`. `POST /tokens` or `POST /tokenize` with `token_intent_id` converts the intent into a
/// token. An intent that is not converted expires after the retention in the tenant's quotas. Its data is not returned.
#[utoipa::path(
    post, path = "/token-intents", tag = "Token intents",
    request_body = NewIntentBody<'_>,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The intent was created.", body = IntentBody<'_>,
         headers(("Location" = String, description = "The URL of the intent."))),
        (status = 429, description = "Too many invalid card numbers were sent.", body = Problem),
    ),
)]
async fn create_token_intent(
    State(vault): State<DataVault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Checked before the body, so that the response discloses nothing to a key without the permission.
    caller.require_anywhere(Permission::TokenIntentCreate)?;
    let body = body?;
    vault.public_storage.admit(&caller, body.size()).await?;
    let body: NewIntentBody<'_> = body.read()?;
    let new = NewIntent {
        kind: body.kind,
        data: body.data,
        encrypted: body.encrypted,
    };
    let template = caller.response_template(|created: &IntentView| {
        let location = format!("{base_url}/token-intents/{}", created.intent.id);
        Answer::created(location, &IntentBody::new(&caller, created))
    });
    let created = intents::create(&vault, &caller, new, &template).await?;
    template.render(&created)
}

/// Read a token intent.
///
/// Requires `token-intent:read`. The data is not returned.
#[utoipa::path(
    get, path = "/token-intents/{id}", tag = "Token intents",
    params(("id" = String, Path, description = "The intent's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The intent.", body = IntentBody<'_>),
        (status = 404, description = "The intent does not exist.", body = Problem),
    ),
)]
async fn find_token_intent(
    State(vault): State<DataVault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let found = intents::find(&vault, &caller, &id).await?;
    Answer::ok(&IntentBody::new(&caller, &found))
}

/// Delete a token intent.
///
/// Requires `token-intent:delete`. The data cannot be recovered.
#[utoipa::path(
    delete, path = "/token-intents/{id}", tag = "Token intents",
    params(("id" = String, Path, description = "The intent's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The intent was deleted."),
        (status = 404, description = "The intent does not exist.", body = Problem),
    ),
)]
async fn delete_token_intent(
    State(vault): State<DataVault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    intents::delete(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// A token intent to create.
#[derive(Deserialize, ToSchema)]
struct NewIntentBody<'a> {
    /// The type of the data, which determines its validation. Any type except `network_token`.
    #[serde(rename = "type")]
    #[schema(value_type = TokenKind, required)]
    kind: Option<String>,
    /// A JSON value that is valid for the type and not null.
    #[serde(borrow)]
    #[schema(value_type = Value)]
    data: Option<&'a RawValue>,
    /// The data as a compact JWE (`ECDH-ES`, `A256GCM`) for a client encryption key; replaces `data`.
    encrypted: Option<String>,
}

/// A token intent. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
pub struct IntentBody<'a> {
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
    /// Equal to that of a token with the same data and the default fingerprint expression.
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
    pub fn new(caller: &Caller, view: &'a IntentView) -> Self {
        let intent = &view.intent;
        Self {
            id: intent.id,
            tenant_id: caller.tenant.uuid,
            kind: intent.kind.name(),
            card: view.details.card(),
            bank: view.details.bank(),
            fingerprint: intent
                .fingerprint
                .as_ref()
                .filter(|_| may_compare(caller, intent.kind, false))
                .map(base58),
            created_by: intent.created_by,
            created_at: format_utc(intent.created_at),
            expires_at: format_utc(intent.expires_at),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("Token intent not found."),
            Error::Velocity(error) => error.into(),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
