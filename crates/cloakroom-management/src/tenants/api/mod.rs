//! HTTP routes of a tenant; those of quotas and the security contact are in files of their own.

mod quotas;
mod security_contact;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, JsonBody, KeyErrors, Problem, ReadErrors, WriteErrors,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{RelatedData, TenantBody, TenantChangeBody};
use super::{Error, Tenant, TenantChanges};
use crate::tenants;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(find_tenant, update_tenant, delete_tenant))
        .routes(routes!(cancel_tenant_deletion))
        .merge(quotas::routes())
        .merge(security_contact::routes())
        .routes(routes!(create_connection, delete_connection))
}

/// Read the tenant.
///
/// Requires `tenant:read`.
#[utoipa::path(
    get, path = "/tenants/self", tag = "Tenants",
    responses(ReadErrors, (status = 200, description = "The tenant of the API key.", body = TenantBody<'_>)),
)]
async fn find_tenant(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let tenant = tenants::find_own(&vault, &caller).await?;
    let related = RelatedData::find(&vault, tenant.id).await?;
    Answer::ok(&TenantBody::new(&tenant, &related))
}

/// Update the tenant.
///
/// Requires `tenant:update`. The given settings are merged with the existing ones. Takes effect on every node within
/// five seconds.
#[utoipa::path(
    put, path = "/tenants/self", tag = "Tenants",
    request_body = TenantChangeBody,
    responses(WriteErrors, BodyErrors, (status = 200, description = "The change is committed.", body = TenantBody<'_>)),
)]
async fn update_tenant(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let change: TenantChangeBody = body.read()?;
    let changes = TenantChanges {
        // A missing name is rejected like an empty one.
        name: Some(change.name.unwrap_or_default()),
        settings: change.settings.unwrap_or_default().into_iter().collect(),
        quotas: Vec::new(),
    };
    let related = RelatedData::find(&vault, caller.tenant).await?;
    let template =
        caller.response_template(|tenant: &Tenant| Answer::ok(&TenantBody::new(tenant, &related)));
    let tenant = tenants::update(&vault, &caller, &changes, &template).await?;
    template.render(&tenant)
}

/// Delete the tenant.
///
/// Requires `tenant:delete`. The first call requests the deletion, and a call with a key of another application
/// confirms it within seven days. After the operator's delay, seven days by default, the tenant is deleted: its keys
/// are rejected, data that it encrypted can no longer be decrypted, and its rows are deleted. Until then the tenant
/// works as before, `GET /tenants/self` shows `deletion`, and `DELETE /tenants/self/deletion` cancels it.
#[utoipa::path(
    delete, path = "/tenants/self", tag = "Tenants",
    responses(
        WriteErrors,
        (status = 204, description = "The deletion is requested or confirmed."),
        (status = 409, description = "A key of another application must confirm it.", body = Problem),
    ),
)]
async fn delete_tenant(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    tenants::delete(&vault, &caller).await?;
    Ok(Answer::no_content())
}

/// Cancel the deletion of the tenant.
///
/// Requires `tenant:update`. Requested and confirmed deletions can be canceled until they are executed.
#[utoipa::path(
    delete, path = "/tenants/self/deletion", tag = "Tenants",
    responses(
        WriteErrors,
        (status = 204, description = "The deletion is canceled."),
        (status = 404, description = "No deletion is pending.", body = Problem),
    ),
)]
async fn cancel_tenant_deletion(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    tenants::cancel_deletion(&vault, &caller).await?;
    Ok(Answer::no_content())
}

/// Connect an identity provider. Not supported.
#[utoipa::path(
    post, path = "/tenants/self/connections", tag = "Tenants",
    responses(
        KeyErrors,
        (status = 410, description = "Single sign-on is not supported.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn create_connection() -> ApiError {
    single_sign_on_unsupported()
}

/// Disconnect an identity provider. Not supported.
#[utoipa::path(
    delete, path = "/tenants/self/connections", tag = "Tenants",
    responses(
        KeyErrors,
        (status = 410, description = "Single sign-on is not supported.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn delete_connection() -> ApiError {
    single_sign_on_unsupported()
}

fn single_sign_on_unsupported() -> ApiError {
    ApiError::gone("Sign-on is not part of this system: there is no login.")
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            // The tenant was deleted after the key was authenticated.
            Error::NotFound => Self::unauthorized(),
            Error::Altered => Self::internal("altered_row"),
            Error::NotConfirmed => Self::conflict(
                "The deletion is requested. A key of another application with tenant:delete must confirm it.",
            ),
            Error::NoDeletion => Self::not_found("No deletion of the tenant is pending."),
            Error::Busy | Error::ProductionTenantInTest => Self::conflict(format!("{error}.")),
            Error::Members(error) => error.into(),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
