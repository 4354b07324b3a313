//! Endpoints for the cardholder's browser: notifications from the issuer's pages, and the hosted page with its calls.
//!
//! No request here affects the outcome of an authentication. The session ID is not guessable, and knowing it only
//! allows reporting that a page is done.

mod challenge;
mod hosted;
mod method;

use std::sync::Arc;

use axum::Extension;
use axum::extract::RawQuery;
use cloakroom_emv3ds::base64url;
use cloakroom_platform::api::{ApiError, Received};
use serde::de::DeserializeOwned;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::pages;
use crate::server::ThreedsServer;
use crate::sessions::Session;

/// Maximum size of a form from an issuer's page, in bytes.
const FORM_MAX: usize = 64 * 1024;

/// Public routes of this module.
pub fn routes() -> OpenApiRouter<ThreedsServer> {
    OpenApiRouter::new()
        .routes(routes!(method::notify, method::show))
        .routes(routes!(challenge::notify, challenge::show))
        .routes(routes!(hosted::show))
        .routes(routes!(hosted::tell_device))
        .routes(routes!(hosted::ask))
        .routes(routes!(hosted::finish))
        .routes(routes!(hosted::cancel))
        .merge(pages::routes())
}

/// Parses the request body as a form.
fn form<T: DeserializeOwned>(received: Option<Extension<Arc<Received>>>) -> Result<T, ApiError> {
    let received = received.map(|Extension(received)| received);
    let bytes = received.as_ref().and_then(|received| received.bytes());
    bytes
        .filter(|bytes| bytes.len() <= FORM_MAX)
        .and_then(|bytes| serde_urlencoded::from_bytes(bytes).ok())
        .ok_or_else(|| ApiError::invalid("body", "must be a form of at most 64 KiB"))
}

/// Whether a transaction ID is the session ID, in upper or lower case.
fn is_id_of(session: &Session, id: &str) -> bool {
    id.parse() == Ok(session.id)
}

/// Decodes a base64url form field.
fn decode(field: &'static str, text: Option<String>) -> Result<Vec<u8>, ApiError> {
    text.and_then(|text| base64url::decode(text.trim()).ok())
        .ok_or_else(|| ApiError::invalid(field, "must be base64url"))
}

/// Returns a query parameter.
fn parameter(RawQuery(query): &RawQuery, name: &str) -> Option<String> {
    let query = query.as_deref()?;
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query).ok()?;
    pairs
        .into_iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
}
