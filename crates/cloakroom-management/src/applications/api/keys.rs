//! HTTP routes for the keys of an application.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::{ApplicationKind, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, KeyErrors, PathId, PathIds, Problem, QueryErrors, ReadErrors,
    WriteErrors,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::applications::body::ApplicationKeyBody;
use crate::applications::{self, CreatedKey, parameters};

pub(super) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(regenerate_key))
        .routes(routes!(create_application_key, list_application_keys))
        .routes(routes!(find_application_key, delete_application_key))
}

/// Regenerate the key of an application. No longer supported.
///
/// Create a new key with `POST /applications/{id}/keys`, and delete the old one when it is no longer used.
#[utoipa::path(
    post, path = "/applications/{id}/regenerate", tag = "Deprecated",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        KeyErrors,
        (status = 410, description = "No longer supported; `detail` names the replacement.", body = Problem),
    ),
)]
async fn regenerate_key(Extension(caller): Extension<Arc<Caller>>) -> ApiError {
    caller
        .deprecated_features
        .reject(DeprecatedFeature::RegenerateKey)
}

/// Create a key.
///
/// Requires `application:create`, and `application:grant` if the application holds more than the key's own application.
/// Existing keys remain valid; an application has at most three. The key is returned in `key` of this response only.
#[utoipa::path(
    post, path = "/applications/{id}/keys", tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        WriteErrors,
        (status = 201, description = "The key is valid.", body = ApplicationKeyBody<'_>,
         headers(("Location" = String, description = "URL of the key."))),
        (status = 404, description = "No such application.", body = Problem),
        (status = 422, description = "The application already has three keys.", body = Problem),
    ),
)]
async fn create_application_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let template = caller.response_template(|created: &CreatedKey| {
        let location = format!("{base_url}/applications/{id}/keys/{}", created.id);
        let body = ApplicationKeyBody::created(caller.tenant, created);
        Answer::created(location, &body)
    });
    let template = template.without_secrets(&["key"]);
    let created = applications::create_key(&vault, (&*caller).into(), &id, &template).await?;
    template.render(&created)
}

/// List the keys of an application.
///
/// Requires `application:read`. Returns all keys, oldest first, without their secrets.
#[utoipa::path(
    get, path = "/applications/{id}/keys", tag = "Applications",
    params(
        ("id" = Uuid, Path, description = "The application's id."),
        ("id" = Option<Vec<Uuid>>, Query, description = "Keys with one of these ids.", max_items = 100),
        ("type" = Option<Vec<ApplicationKind>>, Query, description = "Keys of applications of one of these types."),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "The keys.", body = Vec<ApplicationKeyBody<'_>>),
        (status = 404, description = "No such application.", body = Problem),
    ),
)]
async fn list_application_keys(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ApplicationRead)?;
    let read = parameters::read_keys(query.as_deref());
    let filter = read.map_err(ApiError::all_invalid)?;
    let keys = applications::list_keys(&vault, (&*caller).into(), &id, &filter).await?;
    let bodies = keys
        .iter()
        .map(|key| ApplicationKeyBody::new(caller.tenant, key));
    Answer::ok(&bodies.collect::<Vec<_>>())
}

/// Read a key.
///
/// Requires `application:read`. The secret is not returned; only its digest is stored.
#[utoipa::path(
    get, path = "/applications/{id}/keys/{key_id}", tag = "Applications",
    params(
        ("id" = Uuid, Path, description = "The application's id."),
        ("key_id" = Uuid, Path, description = "The key's id."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The key.", body = ApplicationKeyBody<'_>),
        (status = 404, description = "No such application, or no such key.", body = Problem),
    ),
)]
async fn find_application_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathIds(id, key_id): PathIds,
) -> Result<Answer, ApiError> {
    let key = applications::find_key(&vault, (&*caller).into(), &id, &key_id).await?;
    Answer::ok(&ApplicationKeyBody::new(caller.tenant, &key))
}

/// Delete a key.
///
/// Requires `application:delete`. The key is rejected by this node at once, and by every node within five seconds.
#[utoipa::path(
    delete, path = "/applications/{id}/keys/{key_id}", tag = "Applications",
    params(
        ("id" = Uuid, Path, description = "The application's id."),
        ("key_id" = Uuid, Path, description = "The key's id."),
    ),
    responses(
        WriteErrors,
        (status = 204, description = "The key is deleted."),
        (status = 404, description = "No such application, or no such key.", body = Problem),
    ),
)]
async fn delete_application_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathIds(id, key_id): PathIds,
) -> Result<Answer, ApiError> {
    applications::delete_key(&vault, (&*caller).into(), &id, &key_id).await?;
    Ok(Answer::no_content())
}
