//! HTTP routes for permissions and application templates.

use axum::extract::RawQuery;
use cloakroom_core::access::{ALL_PERMISSIONS, ApplicationKind};
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{Answer, ApiError, KeyErrors, PathId, Problem, QueryErrors};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::applications::body::{PermissionBody, TemplateBody};
use crate::applications::{Error, TEMPLATES, parameters};

pub(super) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_permissions))
        .routes(routes!(list_templates))
        .routes(routes!(find_template))
}

/// List all permissions.
///
/// Works with any valid key.
#[utoipa::path(
    get, path = "/permissions", tag = "Applications",
    params(
        ("application_type" = Option<ApplicationKind>, Query,
         description = "Permissions that applications of this type may have."),
    ),
    responses(KeyErrors, QueryErrors, (status = 200, description = "The permissions.", body = Vec<PermissionBody>)),
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
/// Works with any valid key. A template is a set of grants to copy into a new application.
#[utoipa::path(
    get, path = "/application-templates", tag = "Applications",
    responses(KeyErrors, (status = 200, description = "The templates.", body = Vec<TemplateBody>)),
)]
async fn list_templates() -> Result<Answer, ApiError> {
    let bodies: Vec<_> = TEMPLATES.iter().map(TemplateBody::from).collect();
    Answer::ok(&bodies)
}

/// Read an application template.
///
/// Works with any valid key.
#[utoipa::path(
    get, path = "/application-templates/{id}", tag = "Applications",
    params(("id" = Uuid, Path, description = "The template's id.")),
    responses(
        KeyErrors,
        (status = 200, description = "The template.", body = TemplateBody),
        (status = 404, description = "No such template.", body = Problem),
    ),
)]
async fn find_template(PathId(id): PathId) -> Result<Answer, ApiError> {
    let id = id.parse().unwrap_or(Uuid::nil());
    let template = TEMPLATES.iter().find(|template| template.id == id);
    let template = template.ok_or(Error::NotFound("application template"))?;
    Answer::ok(&TemplateBody::from(template))
}
