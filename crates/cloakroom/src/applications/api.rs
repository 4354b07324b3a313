//! Applications and their keys over HTTP, and what there is to grant.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::body::{
    ApplicationBody, ApplicationChangeBody, ApplicationKeyBody, NewApplicationBody, PermissionBody,
    TemplateBody,
};
use super::{Application, Created, CreatedKey, Error, TEMPLATES, application, parameters};
use crate::access::{ALL_PERMISSIONS, ApplicationKind, Permission};
use crate::api::{Answer, ApiError, BaseUrl, JsonBody, NumberedPageBody, PathId, PathIds, Problem};
use crate::applications;
use crate::caller::Caller;
use crate::deprecations::Deprecated;
use crate::idempotency::Reply;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_application, list_applications))
        .routes(routes!(find_own_application))
        .routes(routes!(
            find_application,
            update_application,
            delete_application
        ))
        .routes(routes!(regenerate_key))
        .routes(routes!(create_application_key, list_application_keys))
        .routes(routes!(find_application_key, delete_application_key))
        .routes(routes!(list_permissions))
        .routes(routes!(list_templates))
        .routes(routes!(find_template))
}

/// Create an application.
///
/// Needs `application:create`. Unless `create_key` is false it gets a key at once: `key` shows it in
/// this answer and never again.
#[utoipa::path(
    post,
    path = "/applications",
    tag = "Applications",
    request_body(content = NewApplicationBody, examples(
        ("private" = (summary = "A server that charges cards and sees them masked", value = json!({
            "name": "Billing",
            "type": "private",
            "permissions": ["token:create"],
            "rules": [{
                "description": "Read cards masked",
                "priority": 1,
                "container": "/pci/",
                "transform": "mask",
                "permissions": ["token:read", "token:search"]
            }]
        }))),
        ("public" = (summary = "A web page that takes cards", value = json!({
            "name": "Checkout", "type": "public", "permissions": ["token:create"]
        }))),
        ("management" = (summary = "A contractor who reads logs until summer", value = json!({
            "name": "Review", "type": "management", "permissions": ["log:read"],
            "expires_at": "2099-06-30"
        }))),
    )),
    responses(
        (status = 201, description = "The application exists and its key works.",
         body = ApplicationBody<'_>,
         headers(("Location" = String, description = "Where the application is."))),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_application(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Before the body is looked at: a key without the permission learns nothing from the answer.
    caller.require_plain(Permission::ApplicationCreate)?;
    let body = body?;
    let new: applications::NewApplication = body.read::<NewApplicationBody>()?.into();
    application::note_removed(&caller, new.kind.as_deref(), &new.grants);
    let reply = Reply::to(&caller, |created: &Created| {
        let location = format!("{base_url}/applications/{}", created.application.id);
        Answer::created(location, &ApplicationBody::created(caller.tenant, created))
    });
    let created = applications::create(&vault, (&*caller).into(), new, &reply).await?;
    reply.answer(&created)
}

/// List applications.
///
/// Needs `application:read`. The newest first. The page after the last one is empty.
#[utoipa::path(
    get,
    path = "/applications",
    tag = "Applications",
    params(
        ("id" = Option<Vec<Uuid>>, Query, description = "Applications with one of these ids.",
         max_items = 100),
        ("type" = Option<Vec<ApplicationKind>>, Query,
         description = "Applications of one of these types."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Applications on a page, 20 without it.",
         minimum = 0, maximum = 100),
    ),
    responses(
        (status = 200, description = "A page of applications.", body = NumberedPageBody<ApplicationBody<'_>>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
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

/// Read the application whose key this is.
///
/// Any valid key will do.
#[utoipa::path(
    get,
    path = "/applications/key",
    tag = "Applications",
    responses(
        (status = 200, description = "The application.", body = ApplicationBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
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
/// Needs `application:read`.
#[utoipa::path(
    get,
    path = "/applications/{id}",
    tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        (status = 200, description = "The application.", body = ApplicationBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
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

/// Change an application.
///
/// Needs `application:update`. Name, permissions and rules are replaced; the type stays. What was
/// taken away is gone on this node at once, and on every node within five seconds.
#[utoipa::path(
    put,
    path = "/applications/{id}",
    tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    request_body(content = ApplicationChangeBody, examples(
        ("permissions" = (summary = "From now on it only creates", value = json!({
            "name": "Checkout", "permissions": ["token:create"]
        }))),
    )),
    responses(
        (status = 200, description = "The change is durable.", body = ApplicationBody<'_>),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
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
    application::note_removed(&caller, None, &change.grants);
    let reply = Reply::to(&caller, |changed: &Application| {
        Answer::ok(&ApplicationBody::new(caller.tenant, changed))
    });
    let asker = (&*caller).into();
    let changed = applications::update(&vault, asker, &id, change, &reply).await?;
    reply.answer(&changed)
}

/// Delete an application and its keys.
///
/// Needs `application:delete`. The keys are dead on this node at once, and on every node within five
/// seconds. Tokens that it created stay.
#[utoipa::path(
    delete,
    path = "/applications/{id}",
    tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        (status = 204, description = "The application and its keys are gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
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

/// Replace the key of an application, which is no longer possible.
///
/// Make a new key with `POST /applications/{id}/keys`, and delete the old one when nobody uses it.
#[utoipa::path(
    post,
    path = "/applications/{id}/regenerate",
    tag = "Deprecated",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        (status = 401, description = "No valid key.", body = Problem),
        (status = 410, description = "This is gone; the detail says what to use.", body = Problem),
    ),
)]
async fn regenerate_key(Extension(caller): Extension<Arc<Caller>>) -> ApiError {
    caller.uses.refuse(Deprecated::RegenerateKey)
}

/// Create a key.
///
/// Needs `application:create`. The others keep working; an application has three at most. `key` shows
/// it in this answer and never again.
#[utoipa::path(
    post,
    path = "/applications/{id}/keys",
    tag = "Applications",
    params(("id" = Uuid, Path, description = "The application's id.")),
    responses(
        (status = 201, description = "The key works.", body = ApplicationKeyBody<'_>,
         headers(("Location" = String, description = "Where the key is."))),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application.", body = Problem),
        (status = 422, description = "It has three keys already.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_application_key(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let reply = Reply::to(&caller, |created: &CreatedKey| {
        let location = format!("{base_url}/applications/{id}/keys/{}", created.id);
        let body = ApplicationKeyBody::created(caller.tenant, created);
        Answer::created(location, &body)
    });
    let created = applications::create_key(&vault, (&*caller).into(), &id, &reply).await?;
    reply.answer(&created)
}

/// List the keys of an application.
///
/// Needs `application:read`. All of them, the oldest first, without their texts.
#[utoipa::path(
    get,
    path = "/applications/{id}/keys",
    tag = "Applications",
    params(
        ("id" = Uuid, Path, description = "The application's id."),
        ("id" = Option<Vec<Uuid>>, Query, description = "Keys with one of these ids.",
         max_items = 100),
        ("type" = Option<Vec<ApplicationKind>>, Query,
         description = "Keys of applications of one of these types."),
    ),
    responses(
        (status = 200, description = "The keys.", body = Vec<ApplicationKeyBody<'_>>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
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
/// Needs `application:read`. Without its text, which nobody knows any more.
#[utoipa::path(
    get,
    path = "/applications/{id}/keys/{key_id}",
    tag = "Applications",
    params(
        ("id" = Uuid, Path, description = "The application's id."),
        ("key_id" = Uuid, Path, description = "The key's id."),
    ),
    responses(
        (status = 200, description = "The key.", body = ApplicationKeyBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application, or it has no such key.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
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
/// Needs `application:delete`. It is dead on this node at once, and on every node within five seconds.
#[utoipa::path(
    delete,
    path = "/applications/{id}/keys/{key_id}",
    tag = "Applications",
    params(
        ("id" = Uuid, Path, description = "The application's id."),
        ("key_id" = Uuid, Path, description = "The key's id."),
    ),
    responses(
        (status = 204, description = "The key is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such application, or it has no such key.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
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

/// List the permissions that there are.
///
/// Any valid key will do.
#[utoipa::path(
    get,
    path = "/permissions",
    tag = "Applications",
    params(
        ("application_type" = Option<ApplicationKind>, Query,
         description = "Permissions that applications of this type may have."),
    ),
    responses(
        (status = 200, description = "The permissions.", body = Vec<PermissionBody>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
    ),
)]
async fn list_permissions(RawQuery(query): RawQuery) -> Result<Answer, ApiError> {
    let read = parameters::read_kind(query.as_deref());
    let kind = read.map_err(ApiError::all_invalid)?;
    let permissions = ALL_PERMISSIONS
        .iter()
        .filter(|permission| kind.is_none_or(|kind| permission.fits(kind)));
    let bodies: Vec<_> = permissions.copied().map(PermissionBody::from).collect();
    Answer::ok(&bodies)
}

/// List the application templates.
///
/// Any valid key will do. A template is grants to begin with: copy them into a new application.
#[utoipa::path(
    get,
    path = "/application-templates",
    tag = "Applications",
    responses(
        (status = 200, description = "The templates.", body = Vec<TemplateBody>),
        (status = 401, description = "No valid key.", body = Problem),
    ),
)]
async fn list_templates() -> Result<Answer, ApiError> {
    let bodies: Vec<_> = TEMPLATES.iter().map(TemplateBody::from).collect();
    Answer::ok(&bodies)
}

/// Read an application template.
///
/// Any valid key will do.
#[utoipa::path(
    get,
    path = "/application-templates/{id}",
    tag = "Applications",
    params(("id" = Uuid, Path, description = "The template's id.")),
    responses(
        (status = 200, description = "The template.", body = TemplateBody),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 404, description = "No such template.", body = Problem),
    ),
)]
async fn find_template(PathId(id): PathId) -> Result<Answer, ApiError> {
    let id = id.parse().unwrap_or(Uuid::nil());
    let template = TEMPLATES.iter().find(|template| template.id == id);
    let template = template.ok_or(Error::NotFound("application template"))?;
    Answer::ok(&TemplateBody::from(template))
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound(what) => Self::not_found(format!("There is no such {what}.")),
            Error::Unauthorized => Self::unauthorized(),
            Error::TooManyKeys(most) => Self::unprocessable(format!(
                "An application has at most {most} keys, and this one has them all: delete one first."
            )),
            Error::Altered(_) => {
                metrics::counter!("access_altered_rows_total").increment(1);
                tracing::error!(
                    error.kind = "altered_row",
                    "an application or one of its keys was changed outside the vault"
                );
                Self::internal("altered_row")
            }
            Error::Unrecorded(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
