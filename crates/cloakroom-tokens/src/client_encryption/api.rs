//! HTTP routes of client encryption keys.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRef, State};
use cloakroom_core::access::{Container, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, HasHttpConfig, JsonBody, PathId, Problem, ReadErrors,
    WriteErrors, format_utc,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{ClientKey, CreatedClientKey, Error, NewKey};
use crate::client_encryption as keys;

/// The routes of this module.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: HasHttpConfig + Clone + Send + Sync + 'static,
    Vault: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(list_keys, create_key))
        .routes(routes!(find_key, delete_key))
}

/// Create a client encryption key.
///
/// Requires `keys:create`. Generates an X25519 key pair and returns the public key in this response only. Send data
/// that is encrypted to it in the attribute `encrypted` of a new token.
#[utoipa::path(
    post, path = "/keys", tag = "Client encryption keys",
    request_body(content = NewKeyBody, description = "Optional."),
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The key is created.", body = CreatedKeyBody,
         headers(("Location" = String, description = "URL of the key."))),
        (status = 422, description = "The tenant already has the maximum number of keys.", body = Problem),
    ),
)]
async fn create_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::KeysCreate)?;
    let body = body?;
    let NewKeyBody {
        expires_at,
        application_id,
        container,
    } = body.read_or_default()?;
    let new = NewKey {
        expires_at,
        application_id,
        container,
    };
    let template = caller.response_template(|created: &CreatedClientKey| {
        let location = format!("{base_url}/keys/{}", created.key.id);
        Answer::created(location, &CreatedKeyBody::new(created))
    });
    let created = keys::create(&vault, &caller, new, &template).await?;
    template.render(&created)
}

/// List client encryption keys.
///
/// Requires `keys:read`. Returns every unexpired key, newest first, without the public key.
#[utoipa::path(
    get, path = "/keys", tag = "Client encryption keys",
    responses(ReadErrors, (status = 200, description = "The keys.", body = Vec<KeyBody>)),
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
/// Requires `keys:read`. The public key is not returned again.
#[utoipa::path(
    get, path = "/keys/{id}", tag = "Client encryption keys",
    params(("id" = String, Path, description = "The key's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The key.", body = KeyBody),
        (status = 404, description = "No such key, or it has expired.", body = Problem),
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
/// Requires `keys:delete`. Data that was encrypted to the key can no longer be decrypted.
#[utoipa::path(
    delete, path = "/keys/{id}", tag = "Client encryption keys",
    params(("id" = String, Path, description = "The key's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The key is deleted."),
        (status = 404, description = "No such key, or it has expired.", body = Problem),
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
    /// ISO 8601, in the future and at most one year ahead; by default in 90 days, unless the operator has configured
    /// another lifetime.
    expires_at: Option<String>,
    /// The only application whose keys and sessions may send values encrypted to this key; any application of the
    /// tenant by default.
    application_id: Option<String>,
    /// The only container, with those below it, in which tokens may be created from such values; any by default. A key
    /// with a container cannot be used for token intents.
    container: Option<String>,
}

/// A client encryption key. Two generations of clients read it, so several attributes have two names.
#[derive(Serialize, ToSchema)]
struct KeyBody {
    key_id: Uuid,
    /// The same as `key_id`.
    id: Uuid,
    /// The same as `expires_at`. Serialized first, because the Node client maps both to `expiresAt` and the last one
    /// wins: it parses only `expires_at` as a date.
    #[serde(rename = "expiresAt")]
    #[schema(format = DateTime)]
    expires_at_again: String,
    #[schema(format = DateTime)]
    expires_at: String,
    /// The only application that may use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    application_id: Option<Uuid>,
    /// The only container, with those below it, in which it may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    container: Option<String>,
}

/// A new client encryption key, with its public key.
#[derive(Serialize, ToSchema)]
struct CreatedKeyBody {
    #[serde(flatten)]
    key: KeyBody,
    /// The raw 32 bytes in Base64, between PEM boundaries.
    public_key_pem: String,
    /// The same as `public_key_pem`.
    #[serde(rename = "publicKeyPEM")]
    public_key_pem_again: String,
}

impl KeyBody {
    fn new(key: &ClientKey) -> Self {
        let expires_at = format_utc(key.expires_at);
        let container = key.binding.container.as_ref().map(Container::as_str);
        Self {
            key_id: key.id,
            id: key.id,
            expires_at_again: expires_at.clone(),
            expires_at,
            application_id: key.binding.application,
            container: container.map(str::to_owned),
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
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("Client encryption key not found."),
            Error::TooMany(_) => Self::unprocessable(format!("{error}. Delete some first.")),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
