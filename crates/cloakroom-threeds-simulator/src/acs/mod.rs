//! The ACS: the pages that the cardholder's browser loads.

mod challenge;
mod decoupled;
mod method;
mod pages;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;

use crate::state::SharedState;

const FORM_BYTES_MAX: usize = 64 * 1024;

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is not part of the documented API"
)]
pub(crate) fn router(state: Arc<SharedState>) -> Router {
    Router::new()
        .route("/acs/method", post(method::complete))
        .route("/acs/method/silent", post(method::never_complete))
        .route("/acs/challenge", post(challenge::begin))
        .route("/acs/challenge/submit", post(challenge::submit))
        .route("/acs/decoupled/{acs_id}", post(decoupled::decide))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(state)
}
