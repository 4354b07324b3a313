//! The signature headers of a delivery.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cloakroom_core::keys::{self, SigningKey};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use uuid::Uuid;

use super::Secret;

const VERSION: HeaderName = HeaderName::from_static("bt-signature-version");
const SIGNATURE: HeaderName = HeaderName::from_static("bt-signature");
const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const HMAC_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// A body in canonical form and the headers that sign it.
pub(crate) struct SignedBody {
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Signs a body for one attempt.
pub(crate) fn sign(
    key: &SigningKey,
    secret: &Secret,
    event: Uuid,
    at: Timestamp,
    body: String,
) -> Result<SignedBody, keys::Error> {
    let header = |text: String| HeaderValue::try_from(text).map_err(|_| keys::Error::Seal);
    let seconds = at.as_second();
    let hmac = secret.sign(format!("{event}.{seconds}.{body}").as_bytes());
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (VERSION, HeaderValue::from_static("v1")),
        (
            SIGNATURE,
            header(STANDARD.encode(key.sign(body.as_bytes())?))?,
        ),
        (ID, header(event.to_string())?),
        (TIMESTAMP, HeaderValue::from(seconds)),
        (HMAC_SIGNATURE, header(format!("v1,{hmac}"))?),
    ];
    Ok(SignedBody {
        headers: headers.into_iter().collect(),
        body: body.into(),
    })
}
