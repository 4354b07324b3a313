//! What a cardholder's browser asks for, without a key: the issuer's pages report here, and the hosted
//! page calls home.
//!
//! Nothing that arrives here decides anything. A session's id cannot be guessed, and knowing it is good
//! for saying that a page is done.

mod challenge;
mod hosted;
mod method;

use std::sync::Arc;

use crate::api::{ApiError, Received};
use crate::threeds::Session;
use crate::threeds_pages::{self, Page};
use crate::vault::Vault;
use axum::Extension;
use axum::extract::RawQuery;
use cloakroom_emv3ds::base64url;
use serde::de::DeserializeOwned;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// No form of an issuer's page is longer.
const FORM_MAX: usize = 64 * 1024;

/// The routes of this room that anyone may ask.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(method::notify, method::show))
        .routes(routes!(challenge::notify, challenge::show))
        .routes(routes!(hosted::show))
        .routes(routes!(hosted::tell_device))
        .routes(routes!(hosted::ask))
        .routes(routes!(hosted::finish))
        .merge(threeds_pages::routes())
}

/// For whoever opens such an address by hand.
fn neutral() -> Page {
    threeds_pages::neutral()
}

/// Reads the form that arrived.
fn form<T: DeserializeOwned>(received: Option<Extension<Arc<Received>>>) -> Result<T, ApiError> {
    let received = received.map(|Extension(received)| received);
    let bytes = received.as_ref().and_then(|received| received.bytes());
    bytes
        .filter(|bytes| bytes.len() <= FORM_MAX)
        .and_then(|bytes| serde_urlencoded::from_bytes(bytes).ok())
        .ok_or_else(|| ApiError::invalid("body", "must be a short form"))
}

/// Whether an id of the protocol is that of a session, in whichever letters.
fn is_about(session: &Session, id: &str) -> bool {
    id.parse() == Ok(session.id)
}

/// Reads JSON that is wrapped for a form.
fn wrapped(field: &'static str, text: Option<String>) -> Result<Vec<u8>, ApiError> {
    text.and_then(|text| base64url::decode(text.trim()).ok())
        .ok_or_else(|| ApiError::invalid(field, "must be base64url"))
}

/// One parameter of a query.
fn parameter(RawQuery(query): &RawQuery, name: &str) -> Option<String> {
    let query = query.as_deref()?;
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query).ok()?;
    pairs
        .into_iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
}
