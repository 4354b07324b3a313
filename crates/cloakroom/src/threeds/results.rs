//! Where directory servers tell results: a listener of its own, which asks for their certificates.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, Limited};

use super::receive;
use crate::api::PeerCertificates;
use crate::telemetry;
use crate::vault::Vault;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const BODY_MAX: usize = 128 * 1024;
const BODY_TIME: Duration = Duration::from_secs(3);

/// The one route of that listener.
#[expect(
    clippy::disallowed_methods,
    reason = "directory servers speak the card networks' protocol, which is no part of the API"
)]
pub fn router(vault: Vault) -> Router {
    let router = Router::new().route("/3ds/rreq", post(tell_result));
    telemetry::recorded(router.with_state(vault))
}

async fn tell_result(
    State(vault): State<Vault>,
    peer: Option<Extension<PeerCertificates>>,
    body: Body,
) -> Response {
    let Some(text) = receive_body(body).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let chain = peer.map(|Extension(peer)| peer.0).unwrap_or_default();
    let answer = receive(&vault, &chain, &text).await;
    let headers = [(CONTENT_TYPE, JSON), (CACHE_CONTROL, NO_STORE)];
    (headers, answer).into_response()
}

async fn receive_body(body: Body) -> Option<Bytes> {
    let whole = Limited::new(body, BODY_MAX).collect();
    let whole = tokio::time::timeout(BODY_TIME, whole).await;
    Some(whole.ok()?.ok()?.to_bytes())
}
