//! Deciding a decoupled authentication by hand, instead of waiting for what the card does.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;

use crate::behaviour::{Answer, Ending};
use crate::results::{Outcome, conclude};
use crate::transaction::Stage;
use crate::world::World;

/// The body is `approve` or `deny`.
pub(super) async fn decide(
    State(world): State<Arc<World>>,
    Path(acs_id): Path<String>,
    body: String,
) -> Response {
    let outcome = match body.trim() {
        "approve" => Outcome::of(Ending {
            status: "Y",
            reason: None,
        }),
        "deny" => Outcome::failed("01", None),
        _ => return (StatusCode::BAD_REQUEST, "approve or deny\n").into_response(),
    };
    let found = world.transaction(&acs_id);
    let Some(transaction) = found.filter(|it| matches!(it.answer, Answer::Decoupled(_))) else {
        return (StatusCode::NOT_FOUND, "no such decoupled authentication\n").into_response();
    };
    let stage = Stage::Ended(outcome.browser_status());
    match conclude(&world, &transaction, outcome, stage).await {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (StatusCode::CONFLICT, "it has ended already\n").into_response(),
    }
}
