//! 3DS Method notifications from the issuer's page.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_pages::{Page, PageContext};
use cloakroom_platform::api::{ApiError, PathId, Problem, Received};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{decode, form, is_id_of, parameter};
use crate::pages;
use crate::server::ThreedsServer;
use crate::sessions;

/// Report that the 3DS Method is complete.
///
/// Sent by the issuer's page through the cardholder's browser. The response is a page that posts a message to its
/// parent windows.
#[utoipa::path(
    post, path = "/3ds/sessions/{id}/method-notification", tag = "3-D Secure",
    operation_id = "notify_method_completion",
    params(("id" = String, Path, description = "The session ID.")),
    request_body(content = MethodForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "A page.", content_type = "text/html"),
        (status = 400, description = "The form does not belong to this session.", body = Problem),
        (status = 404, description = "The session does not exist or has expired.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
pub(super) async fn notify(
    State(server): State<ThreedsServer>,
    PathId(id): PathId,
    context: PageContext,
    query: RawQuery,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Page, ApiError> {
    let form: MethodForm = form(received)?;
    let data = decode("threeDSMethodData", form.threeds_method_data)?;
    let session = sessions::find_by_id(&server, &id).await?;
    let method_data: Option<MethodData> = serde_json::from_slice(&data).ok();
    let is_valid = method_data
        .is_some_and(|method_data| is_id_of(&session, &method_data.threeds_server_trans_id));
    if !is_valid {
        let rule = "must contain the ID of the session in the URL";
        return Err(ApiError::invalid("threeDSMethodData", rule));
    }
    let closes = parameter(&query, "mode").as_deref() == Some("redirect");
    if sessions::complete_method(&server, &session).await.is_err() {
        let why = "The completion of the 3DS Method could not be stored.";
        return Ok(pages::failure_notification(&context, &session.id, why));
    }
    Ok(pages::method_notification(&context, &session.id, closes))
}

/// Show a page that requires no action.
#[utoipa::path(
    get, path = "/3ds/sessions/{id}/method-notification", tag = "3-D Secure",
    operation_id = "show_method_notification",
    params(("id" = String, Path, description = "The session ID.")),
    responses((status = 200, description = "A page.", content_type = "text/html")),
)]
pub(super) async fn show(context: PageContext) -> Page {
    pages::neutral(&context)
}

#[derive(Deserialize, ToSchema)]
struct MethodForm {
    /// base64url-encoded object with `threeDSServerTransID`.
    #[serde(rename = "threeDSMethodData")]
    #[schema(required)]
    threeds_method_data: Option<String>,
}

#[derive(Deserialize)]
struct MethodData {
    #[serde(rename = "threeDSServerTransID")]
    threeds_server_trans_id: String,
}
