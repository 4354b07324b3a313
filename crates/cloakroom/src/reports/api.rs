//! Reports over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Error, Usage};
use crate::api::{Answer, ApiError, Problem, format_utc};
use crate::caller::Caller;
use crate::reports;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new().routes(routes!(report_usage))
}

/// Report what the tenant has and uses.
///
/// Needs `report:read`. Counted when it is asked for.
#[utoipa::path(
    get,
    path = "/tenants/self/reports/usage",
    tag = "Tenants",
    responses(
        (status = 200, description = "The report.", body = UsageBody),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away, or counting took too long.",
         body = Problem),
    ),
)]
async fn report_usage(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let usage = reports::usage(&vault, &caller).await?;
    Answer::ok(&UsageBody::new(&usage))
}

/// What a tenant has and uses.
#[derive(Serialize, ToSchema)]
struct UsageBody {
    token_report: TokenReportBody,
    /// The same as in `token_report`: official clients read this one.
    total_tokens: u64,
}

#[derive(Serialize, ToSchema)]
struct TokenReportBody {
    /// By type, for each that the tenant has tokens of.
    metrics_by_type: BTreeMap<&'static str, KindBody>,
    /// Always 0: nothing is metered.
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
            Error::Denied(denied) => denied.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
