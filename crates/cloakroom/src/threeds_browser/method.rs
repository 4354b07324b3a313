//! The issuer has seen the browser.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{form, is_about, neutral, parameter, wrapped};
use crate::api::{ApiError, PathId, Problem, Received};
use crate::threeds;
use crate::threeds_pages::{self, Page};
use crate::vault::Vault;

/// Report that the 3DS Method is done.
///
/// Sent by the issuer's page through the cardholder's browser. The answer is a page that tells the pages
/// around it.
#[utoipa::path(
    post,
    path = "/3ds/sessions/{id}/method-notification",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    request_body(content = MethodForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "A page.", content_type = "text/html"),
        (status = 400, description = "The form is not one of this session.", body = Problem),
        (status = 404, description = "No such session, or it has expired.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
pub(super) async fn notify(
    State(vault): State<Vault>,
    PathId(id): PathId,
    query: RawQuery,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Page, ApiError> {
    let form: MethodForm = form(received)?;
    let data = wrapped("threeDSMethodData", form.threeds_method_data)?;
    let session = threeds::find_by_id(&vault, &id).await?;
    let told: Option<MethodData> = serde_json::from_slice(&data).ok();
    let is_meant = told.is_some_and(|told| is_about(&session, &told.threeds_server_trans_id));
    if !is_meant {
        let rule = "must name the session of this address";
        return Err(ApiError::invalid("threeDSMethodData", rule));
    }
    let closes = parameter(&query, "mode").as_deref() == Some("redirect");
    if threeds::complete_method(&vault, &session).await.is_err() {
        let why = "That the method is done could not be kept.";
        return Ok(threeds_pages::failed(&session.id, why));
    }
    Ok(threeds_pages::method_notified(&session.id, closes))
}

/// Shows that there is nothing to see.
#[utoipa::path(
    get,
    path = "/3ds/sessions/{id}/method-notification",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    responses((status = 200, description = "A page.", content_type = "text/html")),
)]
pub(super) async fn show() -> Page {
    neutral()
}

#[derive(Deserialize, ToSchema)]
struct MethodForm {
    /// base64url of an object with `threeDSServerTransID`.
    #[serde(rename = "threeDSMethodData")]
    #[schema(required)]
    threeds_method_data: Option<String>,
}

#[derive(Deserialize)]
struct MethodData {
    #[serde(rename = "threeDSServerTransID")]
    threeds_server_trans_id: String,
}
