//! Challenge notifications from the issuer's page.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_pages::{Page, PageContext};
use cloakroom_platform::api::{ApiError, PathId, Problem, Received};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{decode, form, is_id_of};
use crate::pages;
use crate::server::ThreedsServer;
use crate::sessions::{self, Session};

/// Report that a challenge is complete.
///
/// Sent by the issuer's page through the cardholder's browser, so it does not affect the outcome, which comes from the
/// network. The response is a page that posts a message to its parent windows.
#[utoipa::path(
    post, path = "/3ds/sessions/{id}/challenge-notification", tag = "3-D Secure",
    operation_id = "notify_challenge_completion",
    params(("id" = String, Path, description = "The session ID.")),
    request_body(content = ChallengeForm, content_type = "application/x-www-form-urlencoded"),
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
    received: Option<Extension<Arc<Received>>>,
) -> Result<Page, ApiError> {
    let form: ChallengeForm = form(received)?;
    let session = sessions::find_by_id(&server, &id).await?;
    let is_error = form.cres.is_none() && form.error.is_some();
    let text = match is_error {
        true => decode("error", form.error)?,
        false => decode("cres", form.cres)?,
    };
    check(&session, &text)?;
    if !session.is_challenged() {
        return Ok(pages::neutral(&context));
    }
    let id = session.id;
    let Ok(session) = sessions::complete_challenge(&server, session).await else {
        return Ok(pages::failure_notification(
            &context,
            &id,
            "The result could not be retrieved.",
        ));
    };
    let closes = session.facts.web_challenge_mode.as_deref() == Some("redirect");
    Ok(pages::challenge_notification(
        &context,
        &session.id,
        session.outcome(),
        closes,
    ))
}

/// Show a page that requires no action.
#[utoipa::path(
    get, path = "/3ds/sessions/{id}/challenge-notification", tag = "3-D Secure",
    operation_id = "show_challenge_notification",
    params(("id" = String, Path, description = "The session ID.")),
    responses((status = 200, description = "A page.", content_type = "text/html")),
)]
pub(super) async fn show(context: PageContext) -> Page {
    pages::neutral(&context)
}

#[derive(Deserialize, ToSchema)]
struct ChallengeForm {
    /// base64url-encoded CRes.
    cres: Option<String>,
    /// base64url-encoded Erro, instead of a CRes.
    error: Option<String>,
}

/// Checks that the message is about this session. Its other fields are not trusted and not read.
fn check(session: &Session, text: &[u8]) -> Result<(), ApiError> {
    let message: Option<Message> = serde_json::from_slice(text).ok();
    match message.is_some_and(|message| is_id_of(session, &message.threeds_server_trans_id)) {
        true => Ok(()),
        false => {
            let rule = "must be a message about the session in the URL";
            Err(ApiError::invalid("cres", rule))
        }
    }
}

/// The only field of a CRes or an Erro that is read.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "threeDSServerTransID")]
    threeds_server_trans_id: String,
}
