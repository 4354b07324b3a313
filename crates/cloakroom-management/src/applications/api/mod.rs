//! HTTP routes for applications; those of keys and templates are in files of their own.

mod keys;
mod templates;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::{ApplicationKind, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, JsonBody, KeyErrors, NumberedPageBody, PathId, Problem,
    QueryErrors, ReadErrors, WriteErrors,
};
use cloakroom_platform::telemetry::catalog;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{ApplicationBody, ApplicationChangeBody, NewApplicationBody};
use super::{Application, CreatedApplication, Error, application, parameters};
use crate::applications;

pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_application, list_applications))
        .routes(routes!(find_own_application))
        .routes(routes!(
            find_application,
            update_application,
            delete_application
        ))
        .merge(keys::routes())
        .merge(templates::routes())
}

/// Create an application.
///
/// Requires `application:create`, and `application:grant` to grant more than the key's own application holds. Unless
/// `create_key` is false, the application gets a key, which is returned in `key` of this response only.
#[utoipa::path(
    post, path = "/applications", tag = "Applications",
    request_body = NewApplicationBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The application exists and its key works.",
         body = ApplicationBody<'_>,
         headers(("Location" = String, description = "URL of the application."))),
    ),
)]
async fn create_application(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Checked before the body is parsed: a key without the permission learns nothing from errors.
    caller.require_plain(Permission::ApplicationCreate)?;
    let body = body?;
    let new: applications::NewApplication = body.read::<NewApplicationBody>()?.into();
    application::mark_removed_features(&caller, new.kind.as_deref(), &new.grants);
    let template = caller.response_template(|created: &CreatedApplication| {
        let location = format!("{base_url}/applications/{}", created.application.id);
        Answer::created(location, &ApplicationBody::created(caller.tenant, created))
    });
    let template = template.without_secrets(&["key", "keys"]);
    let created = applications::create(&vault, (&*caller).into(), new, &template).await?;
    template.render(&created)
}

/// List applications.
///
/// Requires `application:read`. Newest first. Pages after the last one are empty.
#[utoipa::path(
    get, path = "/applications", tag = "Applications",
    params(
        ("id" = Option<Vec<Uuid>>, Query, description = "Applications with one of these ids.", max_items = 100),
        ("type" = Option<Vec<ApplicationKind>>, Query, description = "Applications of one of these types."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Applications per page; 20 by default.", minimum = 0, maximum = 100),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "A page of applications.", body = NumberedPageBody<ApplicationBody<'_>>),
    ),
)]
async fn list_applications(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ApplicationRead)?;
    let read = parameters::read_list(query.as_deref());
    let (filter, page) = read.map_err(ApiError::all_invalid)?;
    let listed = applications::list(&vault, (&*caller).into(), &filter, page).await?;
    let bodies = listed
        .applications
        .iter()
        .map(|application| ApplicationBody::new(caller.tenant, application));
    let bodies = bodies.collect();
    Answer::ok(&NumberedPageBody::new(page, listed.total, bodies))
}

/// Read the application of the API key used.
///
/// Works with any valid key.
#[utoipa::path(
    get, path = "/applications/key", tag = "Applications",
    responses(
        KeyErrors,
        (status = 200, description = "The application.", body = ApplicationBody<'_>),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn find_own_application(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let application = applications::find_own(&vault, &caller).await?;
    Answer::ok(&ApplicationBody::new(caller.tenant, &application))
}

/// Read an application.
///
/// Requires `application:read`.
#[utoipa::path(
    get, path = "/applications/{id}", tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The application.", body = ApplicationBody<'_>),
        (status = 404, description = "No such application.", body = Problem),
    ),
)]
async fn find_application(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let application = applications::find(&vault, (&*caller).into(), &id).await?;
    Answer::ok(&ApplicationBody::new(caller.tenant, &application))
}

/// Update an application.
///
/// Requires `application:update`, and `application:grant` if the old or new grants exceed the key's own application.
/// Replaces name, permissions and rules; the type cannot change. Takes effect on every node within five seconds.
#[utoipa::path(
    put, path = "/applications/{id}", tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    request_body = ApplicationChangeBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The change is committed.", body = ApplicationBody<'_>),
        (status = 404, description = "No such application.", body = Problem),
    ),
)]
async fn update_application(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ApplicationUpdate)?;
    let body = body?;
    let change: applications::ApplicationChange = body.read::<ApplicationChangeBody>()?.into();
    application::mark_removed_features(&caller, None, &change.grants);
    let template = caller.response_template(|changed: &Application| {
        Answer::ok(&ApplicationBody::new(caller.tenant, changed))
    });
    let requester = (&*caller).into();
    let changed = applications::update(&vault, requester, &id, change, &template).await?;
    template.render(&changed)
}

/// Delete an application and its keys.
///
/// Requires `application:delete`. The keys are rejected by this node at once, and by every node within five seconds.
/// Tokens that the application created remain.
#[utoipa::path(
    delete, path = "/applications/{id}", tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The application and its keys are deleted."),
        (status = 404, description = "No such application.", body = Problem),
    ),
)]
async fn delete_application(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    applications::delete(&vault, (&*caller).into(), &id).await?;
    Ok(Answer::no_content())
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::GrantExceeded(exceeded) => Self::forbidden(format!("{exceeded}.")),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound(what) => Self::not_found(format!("There is no such {what}.")),
            Error::Unauthorized => Self::unauthorized(),
            Error::TooManyKeys(most) => Self::unprocessable(format!(
                "An application can have at most {most} keys. Delete one first."
            )),
            Error::Altered(_) => {
                catalog::ACCESS_ALTERED_ROWS.increment(1);
                tracing::error!(
                    error.kind = "altered_row",
                    "an application or one of its keys was changed outside the vault"
                );
                Self::internal("altered_row")
            }
            Error::AuditError(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
