//! HTTP routes of reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRef, State};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{AccessErrors, Answer, ApiError, Problem, format_utc};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Error, Usage};
use crate::reports;

/// The routes of this module.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Vault: FromRef<S>,
{
    OpenApiRouter::new().routes(routes!(report_usage))
}

/// Report the tenant's token usage.
///
/// Requires `report:read`. Counted on request.
#[utoipa::path(
    get, path = "/tenants/self/reports/usage", tag = "Tenants",
    responses(
        AccessErrors,
        (status = 200, description = "The report.", body = UsageBody),
        (status = 503, description = "The database is unavailable, or counting took too long.", body = Problem),
    ),
)]
async fn report_usage(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let usage = reports::usage(&vault, &caller).await?;
    Answer::ok(&UsageBody::new(&usage))
}

/// Token usage of a tenant.
#[derive(Serialize, ToSchema)]
struct UsageBody {
    token_report: TokenReportBody,
    /// The same as in `token_report`; the official clients read this attribute.
    total_tokens: u64,
}

#[derive(Serialize, ToSchema)]
struct TokenReportBody {
    /// Usage by token type, for each type that the tenant has tokens of.
    metrics_by_type: BTreeMap<&'static str, KindBody>,
    /// Always 0: there is no metering.
    included_monthly_active_tokens: u64,
    /// Tokens created, read or used this calendar month, in UTC.
    monthly_active_tokens: u64,
    total_tokens: u64,
}

#[derive(Serialize, ToSchema)]
struct KindBody {
    count: u64,
    last_created_at: String,
}

impl UsageBody {
    fn new(usage: &Usage) -> Self {
        let by_kind = usage.kinds.iter().map(|kind| {
            let body = KindBody {
                count: kind.count,
                last_created_at: format_utc(kind.last_created_at),
            };
            (kind.kind.name(), body)
        });
        Self {
            token_report: TokenReportBody {
                metrics_by_type: by_kind.collect(),
                included_monthly_active_tokens: 0,
                monthly_active_tokens: usage.monthly_active,
                total_tokens: usage.total(),
            },
            total_tokens: usage.total(),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
