//! HTTP routes of a tenant's quotas.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::{Permission, TenantQuotas};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, JsonBody, Problem, ReadErrors, WriteErrors,
};
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::tenants::body::{QuotaChangeBody, QuotasBody};
use crate::tenants::{self, Tenant, TenantChanges};

pub(super) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new().routes(routes!(find_quotas, update_quotas))
}

/// Read the quotas.
///
/// Requires `tenant:read`. Quotas that the tenant does not set default to those of the deployment.
#[utoipa::path(
    get, path = "/tenants/self/quotas", tag = "Tenants",
    responses(ReadErrors, (status = 200, description = "The quotas in effect.", body = QuotasBody)),
)]
async fn find_quotas(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let tenant = tenants::find_own(&vault, &caller).await?;
    Answer::ok(&QuotasBody::new(&tenant.quotas.or_default(&vault.config)))
}

/// Update the quotas.
///
/// Requires `tenant:update`. Absent quotas are unchanged; null restores the operator's value. Takes effect on every
/// node within five seconds. `rate_limit`, `card_velocity_limit`, `cvc_retention` and `threeds` can only be lowered,
/// and `log_retention` only raised, from the value that the operator has set for the tenant or the deployment.
#[utoipa::path(
    put, path = "/tenants/self/quotas", tag = "Tenants",
    request_body = QuotaChangeBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The quotas in effect.", body = QuotasBody),
        (status = 400, description = "A quota is invalid.", body = Problem),
    ),
)]
async fn update_quotas(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let given: Map<String, Value> = body.read()?;
    let is_quota = |name: &String| TenantQuotas::NAMES.contains(&name.as_str());
    let changes = TenantChanges {
        quotas: given
            .into_iter()
            .filter(|(name, _)| is_quota(name))
            .collect(),
        ..TenantChanges::default()
    };
    let template = caller.response_template(|tenant: &Tenant| {
        Answer::ok(&QuotasBody::new(&tenant.quotas.or_default(&vault.config)))
    });
    let tenant = tenants::update(&vault, &caller, &changes, &template).await?;
    template.render(&tenant)
}
