//! The access control server: the pages that a cardholder's browser is sent to.

mod challenge;
mod decoupled;
mod method;
mod pages;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;

use crate::world::World;

const FORM_BYTES_MAX: usize = 64 * 1024;

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is no part of the documented API"
)]
pub(crate) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/acs/method", post(method::answer))
        .route("/acs/method/silent", post(method::stay_silent))
        .route("/acs/challenge", post(challenge::begin))
        .route("/acs/challenge/submit", post(challenge::submit))
        .route("/acs/decoupled/{acs_id}", post(decoupled::decide))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(world)
}
