//! Completes a decoupled authentication on request, before the test card does.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;

use crate::behavior::{Decision, FinalStatus};
use crate::results::conclude;
use crate::rreq::Outcome;
use crate::state::SharedState;
use crate::transaction::Stage;

/// The body is `approve` or `deny`.
pub(super) async fn decide(
    State(state): State<Arc<SharedState>>,
    Path(acs_id): Path<String>,
    body: String,
) -> Response {
    let outcome = match body.trim() {
        "approve" => Outcome::of(FinalStatus {
            status: "Y",
            reason: None,
        }),
        "deny" => Outcome::failed("01", None),
        _ => {
            return (
                StatusCode::BAD_REQUEST,
                "the body must be approve or deny\n",
            )
                .into_response();
        }
    };
    let found = state.transaction(&acs_id);
    let Some(transaction) = found.filter(|it| matches!(it.decision, Decision::Decoupled(_))) else {
        return (StatusCode::NOT_FOUND, "no such decoupled authentication\n").into_response();
    };
    let stage = Stage::Completed(outcome.browser_status());
    match conclude(&state, &transaction, outcome, stage).await {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (
            StatusCode::CONFLICT,
            "the authentication has already ended\n",
        )
            .into_response(),
    }
}
