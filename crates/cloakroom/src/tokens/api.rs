//! Tokens over HTTP: wire shapes, handlers, and the status of each failure.

use std::borrow::Cow;
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

use super::{Change, Error, NewToken, Placed, TokenPatch, TokenView};
use crate::access::{Container, DeduplicationBehavior, Permission};
use crate::api::{
    Answer, ApiError, BaseUrl, JsonBody, MergePatchBody, Object, PathId, Problem, encode_segment,
    format_at_offset, format_utc,
};
use crate::bins::CardDetails;
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::token_attributes::{Privacy, base58};
use crate::token_types::{BankDetails, TokenKind};
use crate::tokens;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_token))
        .routes(routes!(find_token, update_token, delete_token))
}

/// Create a token.
///
/// Needs `token:create` in the token's container. The data comes back as that grant shows it. With
/// deduplication, an equal token of the same container is returned instead of a second one; whoever
/// lacks `token:read` on it sees only `id`, `type`, `tenant_id`, `fingerprint` and `containers`.
#[utoipa::path(
    post,
    path = "/tokens",
    tag = "Tokens",
    request_body(content = NewTokenBody<'_>, examples(
        ("card" = (summary = "A card, returned again if it is there already", value = json!({
            "type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030,
                     "cvc": "123"},
            "metadata": {"order": "1001"},
            "deduplicate_token": true
        }))),
        ("token" = (summary = "Anything, with a mask, an alias and indexes of its own", value = json!({
            "id": "customer {{ data.ssn | alias_preserve_format: 0, 4 }}",
            "type": "token",
            "data": {"name": "Ada Lovelace", "ssn": "111-22-3333"},
            "mask": {"name": "{{ data.name | slice: 0 }}", "ssn": "{{ data.ssn | reveal_last: 4 }}"},
            "containers": ["/customers/eu/"],
            "search_indexes": ["{{ data.name | downcase }}", "{{ data.ssn | last4 }}"],
            "fingerprint_expression": "{{ data.ssn }}",
            "expires_at": "2099-12-31T23:59:59+01:00"
        }))),
        ("intent" = (summary = "What a token intent holds", value = json!({
            "token_intent_id": "c06d0789-0a38-40be-b7cc-c28a718f76f1",
            "metadata": {"order": "1001"}
        }))),
        ("bank" = (summary = "A bank account, in another container", value = json!({
            "type": "bank",
            "data": {"routing_number": "021000021", "account_number": "00001"},
            "containers": ["/bank/payouts/"]
        }))),
    )),
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
        (status = 429, description = "Too many card numbers were tried.", body = Problem),
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
    let reply = Reply::to(&caller, |placed: &Placed| {
        let id = encode_segment(&placed.view.token.id.text());
        let location = format!("{base_url}/tokens/{id}");
        Answer::created(location, &TokenBody::placed(&caller, placed))
    });
    let placed = tokens::create(&vault, &caller, new.into(), &reply).await?;
    reply.answer(&placed)
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

/// Change a token.
///
/// Needs `token:update` in the token's container and in the one it moves to. `data`, `mask` and
/// `metadata` are merged (RFC 7386), everything else is replaced; `null` goes back to the default.
/// The type's rules, the fingerprint and the search indexes are applied to the merged data.
#[utoipa::path(
    patch,
    path = "/tokens/{id}",
    tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    request_body(content = TokenPatchBody, content_type = "application/merge-patch+json", examples(
        ("metadata" = (summary = "Add one entry, remove another", value = json!({
            "metadata": {"order": "1002", "coupon": null}
        }))),
        ("keep" = (summary = "Keep it for good", value = json!({"expires_at": null}))),
    )),
    responses(
        (status = 200, description = "The change is durable.", body = TokenBody<'_>),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 404, description = "No such token.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 409, description = "Others change the same token all the time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not a JSON merge patch.", body = Problem),
        (status = 429, description = "Too many card numbers were tried.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn update_token(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<MergePatchBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::TokenUpdate)?;
    let MergePatchBody(body) = body?;
    let patch: TokenPatchBody = body.read()?;
    let reply = Reply::to(&caller, |placed: &Placed| {
        Answer::ok(&TokenBody::placed(&caller, placed))
    });
    let placed = tokens::update(&vault, &caller, &id, &patch.into(), &reply).await?;
    reply.answer(&placed)
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
pub(crate) struct NewTokenBody<'a> {
    /// A name of your own, or an expression that makes one of the data; without it, a UUID is made.
    #[schema(min_length = 3, max_length = 1000)]
    id: Option<String>,
    /// What the data is; decides the rules for it. Required unless an intent gives it.
    #[serde(rename = "type")]
    #[schema(value_type = Option<TokenKind>)]
    kind: Option<String>,
    /// Any JSON value but null that follows the rules of the type. Required unless an intent gives it.
    #[serde(borrow)]
    #[schema(value_type = Value, required = false)]
    data: Option<&'a RawValue>,
    /// In place of `data`: it as a compact JWE (`ECDH-ES`, `A256GCM`) for a client encryption key.
    encrypted: Option<String>,
    /// What readers without the right to reveal see in place of the data; without it, the type's own.
    mask: Option<Value>,
    /// Exactly one path, such as `/pci/high/`; without it, the type's own.
    #[schema(value_type = Option<Vec<Container>>, min_items = 1, max_items = 1)]
    containers: Option<Vec<String>>,
    /// Deprecated: names the container when `containers` does not.
    #[schema(value_type = Option<PrivacyBody>)]
    privacy: Option<Object<PrivacyBody>>,
    /// Clear strings beside the data; an entry that is null is dropped.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    metadata: Option<Map<String, Value>>,
    /// Expressions whose values the token can be searched by; without them, the type's own.
    #[schema(max_items = 10)]
    search_indexes: Option<Vec<String>>,
    /// The expression that makes the fingerprint; without it, the type's own.
    #[schema(max_length = 400)]
    fingerprint_expression: Option<String>,
    /// Whether an equal token of the same container is returned instead of a second one; without it,
    /// the tenant's setting decides.
    deduplicate_token: Option<bool>,
    /// ISO 8601, or `month/day/year` with an optional time and offset.
    expires_at: Option<String>,
    /// An intent that gives type and data, and is gone afterwards. Its security code is not kept.
    token_intent_id: Option<String>,
}

/// Deprecated: `/<classification>/<impact_level>/`, each with the type's own as default.
#[derive(Deserialize, ToSchema)]
struct PrivacyBody {
    /// `general`, `bank`, `pci` or `pii`.
    classification: Option<String>,
    /// `low`, `moderate` or `high`.
    impact_level: Option<String>,
}

impl<'a> From<NewTokenBody<'a>> for NewToken<'a> {
    fn from(body: NewTokenBody<'a>) -> Self {
        Self {
            id: body.id,
            kind: body.kind,
            data: body.data,
            encrypted: body.encrypted,
            token_intent_id: body.token_intent_id,
            mask: body.mask,
            containers: body.containers,
            privacy: body.privacy.map(|Object(privacy)| Privacy {
                classification: privacy.classification,
                impact_level: privacy.impact_level,
            }),
            metadata: body.metadata,
            search_indexes: body.search_indexes,
            fingerprint_expression: body.fingerprint_expression,
            deduplicate_token: body.deduplicate_token,
            expires_at: body.expires_at,
        }
    }
}

/// Changes to a token. What is absent stays; `id`, `type` and unknown members are ignored.
#[derive(Deserialize, ToSchema)]
struct TokenPatchBody {
    /// Merged into the data; a value that is no object replaces it, and null is refused.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    data: Change<Value>,
    /// Merged into the mask; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    mask: Change<Value>,
    /// Merged into the metadata; null removes all of it, a null entry that entry.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    metadata: Change<Map<String, Value>>,
    /// Moves the token; null moves it back to its type's own container.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Container>>, min_items = 1, max_items = 1)]
    containers: Change<Vec<String>>,
    /// Replaces the search indexes; null removes them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 10)]
    search_indexes: Change<Vec<String>>,
    /// Replaces the expression; null goes back to the type's own.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 400)]
    fingerprint_expression: Change<String>,
    /// For this request alone; without it, the tenant's setting decides.
    deduplicate_token: Option<bool>,
    /// Replaces the expiry; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    expires_at: Change<String>,
}

impl From<TokenPatchBody> for TokenPatch {
    fn from(body: TokenPatchBody) -> Self {
        Self {
            data: body.data,
            mask: body.mask,
            metadata: body.metadata,
            containers: body.containers,
            search_indexes: body.search_indexes,
            fingerprint_expression: body.fingerprint_expression,
            deduplicate_token: body.deduplicate_token,
            expires_at: body.expires_at,
        }
    }
}

/// A token as its caller may see it. Attributes without a value are left out.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenBody<'a> {
    id: String,
    tenant_id: Uuid,
    #[serde(rename = "type")]
    #[schema(value_type = TokenKind)]
    kind: &'static str,
    #[serde(flatten)]
    #[schema(value_type = SeenBody<'_>)]
    seen: Option<SeenBody<'a>>,
    /// Equal for equal data of one type and tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fingerprint: Option<String>,
    #[schema(value_type = Vec<Container>, min_items = 1, max_items = 1)]
    containers: [&'a str; 1],
    /// In answers to writes only.
    #[serde(rename = "_extras", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    extras: Option<ExtrasBody>,
}

/// What only those see who may see the token and not merely meet it: `search_indexes`, `created_by`
/// and `created_at` are always there for them, and nothing of it for others.
#[derive(Serialize, ToSchema)]
struct SeenBody<'a> {
    /// Redacted (absent), masked or revealed, as the caller's grants say.
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
    /// What happened to it: `read_existing` or `update_existing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, pattern = "^(read|update)_existing$")]
    deduplication_behavior: Option<DeduplicationBehavior>,
    /// That the data came encrypted; absent when it did not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    decrypted_payload: bool,
}

impl<'a> TokenBody<'a> {
    pub(crate) fn new(caller: &Caller, view: &'a TokenView) -> Self {
        let token = &view.token;
        Self {
            id: token.id.text().into_owned(),
            tenant_id: caller.tenant.uuid,
            kind: token.kind.name(),
            seen: SeenBody::new(view),
            fingerprint: token.fingerprint.as_ref().map(base58),
            containers: [token.container.as_str()],
            extras: None,
        }
    }

    pub(crate) fn placed(caller: &Caller, placed: &'a Placed) -> Self {
        let mut body = Self::new(caller, &placed.view);
        body.extras = Some(ExtrasBody {
            deduplicated: placed.deduplication.is_some(),
            deduplication_behavior: placed.deduplication,
            decrypted_payload: placed.was_encrypted,
        });
        body
    }
}

impl<'a> SeenBody<'a> {
    fn new(view: &'a TokenView) -> Option<Self> {
        let (token, shown) = (&view.token, view.shown.as_ref()?);
        Some(Self {
            data: shown.data.as_deref(),
            mask: token.shown_mask(),
            card: shown.details.card(),
            network_token: shown.details.network_token(),
            bank: shown.details.bank(),
            metadata: token
                .metadata
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
            search_indexes: token.shown_search_indexes(),
            fingerprint_expression: token.shown_fingerprint_expression(),
            created_by: token.created_by,
            created_at: format_utc(token.created_at),
            modified_by: token.modified_by,
            modified_at: token.modified_at.map(format_utc),
            expires_at: token
                .expiry
                .map(|expiry| format_at_offset(expiry.at, expiry.offset_minutes)),
        })
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("Token not found."),
            Error::IdTaken => Self::conflict("A token with this id exists."),
            Error::Contended => {
                Self::conflict("Others changed the same token at the same moment; try again.")
            }
            Error::Velocity(error) => error.into(),
            Error::Intent(error) => error.into(),
            Error::Unrecorded(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
