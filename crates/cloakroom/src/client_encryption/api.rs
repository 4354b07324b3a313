//! Client encryption keys over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{ClientKey, CreatedClientKey, Error};
use crate::access::Permission;
use crate::api::{Answer, ApiError, BaseUrl, JsonBody, PathId, Problem, format_utc};
use crate::caller::Caller;
use crate::client_encryption as keys;
use crate::idempotency::Reply;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_keys, create_key))
        .routes(routes!(find_key, delete_key))
}

/// Create a client encryption key.
///
/// Needs `keys:create`. The vault makes an X25519 key pair and shows the public half this once. What is
/// encrypted to it goes into the attribute `encrypted` of a new token.
#[utoipa::path(
    post,
    path = "/keys",
    tag = "Client encryption keys",
    request_body(content = NewKeyBody, description = "Optional: it may be left out.", examples(
        ("year" = (summary = "For a year", value = json!({}))),
    )),
    responses(
        (status = 201, description = "The key exists and is durable.", body = CreatedKeyBody,
         headers(("Location" = String, description = "Where the key is."))),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 422, description = "The tenant has as many keys as it may have.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::KeysCreate)?;
    let body = body?;
    let new: NewKeyBody = body.read_or_default()?;
    let reply = Reply::to(&caller, |created: &CreatedClientKey| {
        let location = format!("{base_url}/keys/{}", created.key.id);
        Answer::created(location, &CreatedKeyBody::new(created))
    });
    let expires_at = new.expires_at.as_deref();
    let created = keys::create(&vault, &caller, expires_at, &reply).await?;
    reply.answer(&created)
}

/// List client encryption keys.
///
/// Needs `keys:read`. Every key that has not expired, newest first, without its public half.
#[utoipa::path(
    get,
    path = "/keys",
    tag = "Client encryption keys",
    responses(
        (status = 200, description = "The keys.", body = Vec<KeyBody>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_keys(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let listed = keys::list(&vault, &caller).await?;
    let bodies: Vec<KeyBody> = listed.iter().map(KeyBody::new).collect();
    Answer::ok(&bodies)
}

/// Read a client encryption key.
///
/// Needs `keys:read`. The public half is not shown again.
#[utoipa::path(
    get,
    path = "/keys/{id}",
    tag = "Client encryption keys",
    params(("id" = String, Path, description = "The key's id.")),
    responses(
        (status = 200, description = "The key.", body = KeyBody),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such key, or it expired.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let found = keys::find(&vault, &caller, &id).await?;
    Answer::ok(&KeyBody::new(&found))
}

/// Delete a client encryption key.
///
/// Needs `keys:delete`. What was encrypted to it cannot be opened from then on.
#[utoipa::path(
    delete,
    path = "/keys/{id}",
    tag = "Client encryption keys",
    params(("id" = String, Path, description = "The key's id.")),
    responses(
        (status = 204, description = "The key is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such key, or it expired.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn delete_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    keys::delete(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// A client encryption key to create.
#[derive(Default, Deserialize, ToSchema)]
struct NewKeyBody {
    /// ISO 8601, in the future and a year ahead at most; without it, in a year.
    expires_at: Option<String>,
}

/// A client encryption key. Clients of two generations read it, so everything stands here twice.
#[derive(Serialize, ToSchema)]
struct KeyBody {
    key_id: Uuid,
    /// The same as `key_id`.
    id: Uuid,
    /// The same as `expires_at`. It stands before it, because the Node client gives both the name
    /// `expiresAt`, and the last one wins: that one it makes a time of.
    #[serde(rename = "expiresAt")]
    #[schema(format = DateTime)]
    expires_at_again: String,
    #[schema(format = DateTime)]
    expires_at: String,
}

/// A new client encryption key, with its public half.
#[derive(Serialize, ToSchema)]
struct CreatedKeyBody {
    #[serde(flatten)]
    key: KeyBody,
    /// The raw 32 bytes in base64, between the usual first and last line.
    public_key_pem: String,
    /// The same as `public_key_pem`.
    #[serde(rename = "publicKeyPEM")]
    public_key_pem_again: String,
}

impl KeyBody {
    fn new(key: &ClientKey) -> Self {
        let expires_at = format_utc(key.expires_at);
        Self {
            key_id: key.id,
            id: key.id,
            expires_at_again: expires_at.clone(),
            expires_at,
        }
    }
}

impl CreatedKeyBody {
    fn new(created: &CreatedClientKey) -> Self {
        let public_key_pem = created.pem();
        Self {
            key: KeyBody::new(&created.key),
            public_key_pem_again: public_key_pem.clone(),
            public_key_pem,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid([broken]),
            Error::NotFound => Self::not_found("Client encryption key not found."),
            Error::TooMany(_) => Self::unprocessable(format!("{error}: delete some first.")),
            Error::Unrecorded(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
