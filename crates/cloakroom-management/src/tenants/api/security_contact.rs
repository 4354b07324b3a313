//! HTTP routes of a tenant's security contact.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, JsonBody, Problem, ReadErrors, WriteErrors,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::members::Email;
use crate::tenants;
use crate::tenants::body::{NewSecurityContactBody, SecurityContactBody};

pub(super) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new().routes(routes!(find_security_contact, update_security_contact))
}

/// Read the security contact.
///
/// Requires `tenant:read`. The response is an empty object if there is none.
#[utoipa::path(
    get, path = "/tenants/self/security-contact", tag = "Tenants",
    responses(ReadErrors, (status = 200, description = "The address.", body = SecurityContactBody<'_>)),
)]
async fn find_security_contact(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let email = tenants::find_security_contact(&vault, &caller).await?;
    Answer::ok(&SecurityContactBody {
        email: email.as_deref(),
    })
}

/// Update the security contact.
///
/// Requires `tenant:update`.
#[utoipa::path(
    put, path = "/tenants/self/security-contact", tag = "Tenants",
    request_body = NewSecurityContactBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The address.", body = SecurityContactBody<'_>),
        (status = 400, description = "`email` is missing or not an e-mail address.", body = Problem),
    ),
)]
async fn update_security_contact(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let new: NewSecurityContactBody = body.read()?;
    let email = new.email.ok_or_else(|| "is required".to_owned());
    let email = email.and_then(|text| Email::parse(&text));
    let email = email.map_err(|rule| ApiError::invalid("email", rule))?;
    let template = caller.response_template(|email: &Email| {
        let email = Some(email.as_str());
        Answer::ok(&SecurityContactBody { email })
    });
    tenants::set_security_contact(&vault, &caller, &email, &template).await?;
    template.render(&email)
}
