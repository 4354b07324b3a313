//! The browser comes back from the challenge.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{form, is_about, neutral, wrapped};
use crate::api::{ApiError, PathId, Problem, Received};
use crate::threeds::{self, Session};
use crate::threeds_pages::{self, Page};
use crate::vault::Vault;

/// Report that a challenge is over.
///
/// Sent by the issuer's page through the cardholder's browser, so it says nothing about the outcome: that
/// comes from the network. The answer is a page that tells the pages around it.
#[utoipa::path(
    post,
    path = "/3ds/sessions/{id}/challenge-notification",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    request_body(content = ChallengeForm, content_type = "application/x-www-form-urlencoded"),
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
    received: Option<Extension<Arc<Received>>>,
) -> Result<Page, ApiError> {
    let form: ChallengeForm = form(received)?;
    let session = threeds::find_by_id(&vault, &id).await?;
    let is_error = form.cres.is_none() && form.error.is_some();
    let text = match is_error {
        true => wrapped("error", form.error)?,
        false => wrapped("cres", form.cres)?,
    };
    check(&session, &text)?;
    if !session.is_challenged() {
        return Ok(neutral());
    }
    let id = session.id;
    let Ok(session) = threeds::complete_challenge(&vault, session).await else {
        return Ok(threeds_pages::failed(
            &id,
            "The result could not be asked for.",
        ));
    };
    let closes = session.facts.web_challenge_mode.as_deref() == Some("redirect");
    Ok(threeds_pages::challenge_notified(
        &session.id,
        session.outcome(),
        closes,
    ))
}

/// Shows that there is nothing to see.
#[utoipa::path(
    get,
    path = "/3ds/sessions/{id}/challenge-notification",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    responses((status = 200, description = "A page.", content_type = "text/html")),
)]
pub(super) async fn show() -> Page {
    neutral()
}

#[derive(Deserialize, ToSchema)]
struct ChallengeForm {
    /// base64url of a CRes.
    cres: Option<String>,
    /// base64url of an Erro, in place of it.
    error: Option<String>,
}

/// Whether it speaks of this session. It is not believed beyond that, so nothing else of it matters.
fn check(session: &Session, text: &[u8]) -> Result<(), ApiError> {
    let told: Option<Message> = serde_json::from_slice(text).ok();
    match told.is_some_and(|told| is_about(session, &told.threeds_server_trans_id)) {
        true => Ok(()),
        false => {
            let rule = "must be a message about the session of this address";
            Err(ApiError::invalid("cres", rule))
        }
    }
}

/// As much of a CRes or an Erro as counts.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "threeDSServerTransID")]
    threeds_server_trans_id: String,
}
