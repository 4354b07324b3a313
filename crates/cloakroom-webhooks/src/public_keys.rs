//! The route that publishes the keys for verification.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_platform::api::{ApiError, Problem};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::server::WebhookServer;

/// Keys that receivers can verify with: the one that signs, and the one before it.
const PUBLISHED: usize = 2;
const LINE: usize = 64;

/// Public routes: receivers of events have no key.
pub fn routes() -> OpenApiRouter<WebhookServer> {
    OpenApiRouter::new().routes(routes!(show_webhook_key))
}

/// Read the public keys that verify the header `BT-SIGNATURE` of webhooks.
///
/// The first key signs. After a rotation, the previous one follows.
#[utoipa::path(
    get, path = "/keys/webhooks.v1.key", tag = "Webhooks",
    responses(
        (status = 200, description = "RSA public keys in PEM, the one that signs first.",
         content_type = "application/x-pem-file", body = String),
        (status = 404, description = "There is no key yet: it is created with the first webhook.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn show_webhook_key(State(server): State<WebhookServer>) -> Result<Response, ApiError> {
    let keys = server.signing_keys.current(&server).await?;
    if keys.is_empty() {
        let detail = "There is no key yet: it is created with the first webhook.";
        return Err(ApiError::not_found(detail));
    }
    let published = keys.iter().take(PUBLISHED);
    let text: String = published.map(|key| pem(&key.public_key)).collect();
    let headers = [
        (CONTENT_TYPE, "application/x-pem-file"),
        (CACHE_CONTROL, "public, max-age=300"),
    ];
    Ok((headers, text).into_response())
}

fn pem(public_key: &[u8]) -> String {
    let encoded = STANDARD.encode(public_key);
    let lines = encoded.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        lines.join("\n")
    )
}
