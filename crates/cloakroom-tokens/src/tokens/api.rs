//! HTTP interface of tokens: bodies, handlers and error mapping.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::{Container, DeduplicationBehavior, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, JsonBody, MergePatchBody, PathId, Problem, ReadErrors,
    WriteErrors, encode_segment, format_at_offset, format_utc,
};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, NewToken, TokenPatch, TokenView, WrittenToken};
use crate::attributes::{base58, may_compare};
use crate::bins::CardDetails;
use crate::tokens;
use crate::tokens::TokenVault;
use crate::types::{BankDetails, TokenKind};

/// The routes of this module.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(create_token))
        .routes(routes!(find_token, update_token, delete_token))
}

/// Create a token.
///
/// Requires `token:create` in the token's container. The response contains the data as that permission's transform
/// shows it. With deduplication, an existing token with the same fingerprint in the same container is returned instead.
/// A caller without `token:read` on it receives only `id`, `type`, `tenant_id`, `fingerprint` and `containers`.
#[utoipa::path(
    post, path = "/tokens", tag = "Tokens",
    request_body = NewToken<'_>,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The token was created, or an existing one was returned.", body = TokenBody<'_>,
         headers(("Location" = String, description = "The URL of the token."))),
        (status = 409, description = "The id is in use or reserved.", body = Problem),
        (status = 429, description = "Too many invalid card numbers were sent.", body = Problem),
    ),
)]
async fn create_token(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Checked before the body, so that the response discloses nothing to a key without the permission.
    caller.require_anywhere(Permission::TokenCreate)?;
    let body = body?;
    vault.public_storage.admit(&caller, body.size()).await?;
    let new: NewToken<'_> = body.read()?;
    let template = caller.response_template(|written: &WrittenToken| {
        let id = encode_segment(&written.view.token.id.text());
        let location = format!("{base_url}/tokens/{id}");
        Answer::created(location, &TokenBody::for_write(&caller, written))
    });
    let written = tokens::create(&vault, &caller, new, &template).await?;
    template.render(&written)
}

/// Read a token.
///
/// Requires `token:read` in the token's container. The response contains the data as that permission's transform shows
/// it.
#[utoipa::path(
    get, path = "/tokens/{id}", tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The token.", body = TokenBody<'_>),
        (status = 404, description = "The token does not exist.", body = Problem),
    ),
)]
async fn find_token(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let found = tokens::find(&vault, &caller, &id).await?;
    Answer::ok(&TokenBody::new(&caller, &found))
}

/// Update a token.
///
/// Requires `token:update` in the token's container and in the one it moves to. `data`, `mask` and `metadata` are
/// merged (RFC 7386). All other attributes are replaced; `null` restores the default. The merged data is validated by
/// the rules of the type, and the fingerprint and the search indexes are computed from it.
#[utoipa::path(
    patch, path = "/tokens/{id}", tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    request_body(content = TokenPatch, content_type = "application/merge-patch+json"),
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The updated token.", body = TokenBody<'_>),
        (status = 404, description = "The token does not exist.", body = Problem),
        (status = 409, description = "The token was modified concurrently; retry the request.", body = Problem),
        (status = 415, description = "The body is not a JSON merge patch.", body = Problem),
        (status = 429, description = "The card velocity limit is exceeded.", body = Problem),
    ),
)]
async fn update_token(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<MergePatchBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::TokenUpdate)?;
    let MergePatchBody(body) = body?;
    vault.public_storage.admit(&caller, body.size()).await?;
    let patch: TokenPatch = body.read()?;
    let template = caller.response_template(|written: &WrittenToken| {
        Answer::ok(&TokenBody::for_write(&caller, written))
    });
    let written = tokens::update(&vault, &caller, &id, &patch, &template).await?;
    template.render(&written)
}

/// Delete a token.
///
/// Requires `token:delete` in the token's container. The data cannot be recovered.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The token was deleted."),
        (status = 404, description = "The token does not exist.", body = Problem),
    ),
)]
async fn delete_token(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    tokens::delete(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// A token as the caller may see it. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
pub struct TokenBody<'a> {
    id: String,
    tenant_id: Uuid,
    #[serde(rename = "type")]
    #[schema(value_type = TokenKind)]
    kind: &'static str,
    #[serde(flatten)]
    #[schema(value_type = SeenBody<'_>)]
    seen: Option<SeenBody<'a>>,
    /// Identical for identical data of the same type and tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fingerprint: Option<String>,
    #[schema(value_type = Vec<Container>, min_items = 1, max_items = 1)]
    containers: [&'a str; 1],
    /// Only in responses to writes.
    #[serde(rename = "_extras", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    extras: Option<ExtrasBody>,
}

/// Attributes that are omitted if deduplication returns a token that the caller may not read. Otherwise
/// `search_indexes`, `created_by` and `created_at` are always present.
#[derive(Serialize, ToSchema)]
struct SeenBody<'a> {
    /// Redacted (absent), masked or revealed, by the caller's permissions and access rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    data: Option<&'a RawValue>,
    /// The mask expressions, not the masked data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    mask: Option<Cow<'static, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    card: Option<&'a CardDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    network_token: Option<&'a CardDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bank: Option<&'a BankDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, String>)]
    metadata: Option<&'a RawValue>,
    #[schema(required = false)]
    search_indexes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fingerprint_expression: Option<&'a str>,
    #[schema(required = false)]
    created_by: Uuid,
    #[schema(format = DateTime, required = false)]
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    modified_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    expires_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct ExtrasBody {
    /// Whether an existing token was returned instead of a new one.
    deduplicated: bool,
    /// How the existing token was handled: `read_existing` or `update_existing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, pattern = "^(read|update)_existing$")]
    deduplication_behavior: Option<DeduplicationBehavior>,
    /// True if the data was sent encrypted; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    decrypted_payload: bool,
}

impl<'a> TokenBody<'a> {
    pub fn new(caller: &Caller, view: &'a TokenView) -> Self {
        let token = &view.token;
        let has_own = token.attributes.has_own_fingerprint();
        let comparable = may_compare(caller, token.kind, has_own);
        Self {
            id: token.id.text().into_owned(),
            tenant_id: caller.tenant.uuid,
            kind: token.kind.name(),
            seen: SeenBody::new(view),
            fingerprint: token
                .fingerprint
                .as_ref()
                .filter(|_| comparable)
                .map(base58),
            containers: [token.container.as_str()],
            extras: None,
        }
    }

    pub fn for_write(caller: &Caller, written: &'a WrittenToken) -> Self {
        let mut body = Self::new(caller, &written.view);
        body.extras = Some(ExtrasBody {
            deduplicated: written.deduplication.is_some(),
            deduplication_behavior: written.deduplication,
            decrypted_payload: written.was_encrypted,
        });
        body
    }
}

impl<'a> SeenBody<'a> {
    fn new(view: &'a TokenView) -> Option<Self> {
        let (token, shown) = (&view.token, view.shown.as_ref()?);
        let attributes = &token.attributes;
        Some(Self {
            data: shown.data.as_deref(),
            mask: attributes.shown_mask(token.kind),
            card: shown.details.card(),
            network_token: shown.details.network_token(),
            bank: shown.details.bank(),
            metadata: attributes
                .metadata
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
            search_indexes: attributes.shown_search_indexes(token.kind),
            fingerprint_expression: token
                .fingerprint
                .map(|_| attributes.shown_fingerprint_expression(token.kind)),
            created_by: token.created_by,
            created_at: format_utc(token.created_at),
            modified_by: token.modified_by,
            modified_at: token.modified_at.map(format_utc),
            expires_at: attributes
                .expiry
                .map(|expiry| format_at_offset(expiry.at, expiry.offset_minutes)),
        })
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NeedsReveal(attribute) => Self::forbidden(format!(
                "Setting `{attribute}` on data that was not sent with the request requires an access rule that \
                 reveals the token for token:read, token:search or token:update."
            )),
            Error::NotFound => Self::not_found("Token not found."),
            Error::IdTaken => {
                Self::conflict("A token with this id exists or was deleted. Choose another id.")
            }
            Error::Contended => {
                Self::conflict("The token was modified concurrently; retry the request.")
            }
            Error::Velocity(error) => error.into(),
            Error::Intent(error) => error.into(),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
