//! Results endpoint for directory servers, on a separate listener with mutual TLS.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use cloakroom_platform::api::PeerCertificates;
use cloakroom_platform::telemetry;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, Limited};

use super::receive;
use crate::server::ThreedsServer;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const BODY_MAX: usize = 128 * 1024;
const BODY_TIME: Duration = Duration::from_secs(3);

/// Router of the results listener.
#[expect(
    clippy::disallowed_methods,
    reason = "the EMV 3DS endpoint for directory servers is not part of the API"
)]
pub fn router(server: ThreedsServer) -> Router {
    let router = Router::new().route("/3ds/rreq", post(set_result));
    telemetry::recorded(router.with_state(server))
}

async fn set_result(
    State(server): State<ThreedsServer>,
    peer: Option<Extension<PeerCertificates>>,
    body: Body,
) -> Response {
    let Some(text) = receive_body(body).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let chain = peer.map(|Extension(peer)| peer.0).unwrap_or_default();
    let response = receive(&server, &chain, &text).await;
    let headers = [(CONTENT_TYPE, JSON), (CACHE_CONTROL, NO_STORE)];
    (headers, response).into_response()
}

async fn receive_body(body: Body) -> Option<Bytes> {
    let whole = Limited::new(body, BODY_MAX).collect();
    let whole = tokio::time::timeout(BODY_TIME, whole).await;
    Some(whole.ok()?.ok()?.to_bytes())
}
