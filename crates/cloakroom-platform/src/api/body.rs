//! JSON request bodies: receiving and deserializing them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use cloakroom_crypto::Sensitive;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{ApiError, FieldError, Object, json_limits};
use crate::config;

/// The maximum size of a request body, and the timeout for receiving it.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    pub max_bytes: usize,
    pub timeout: Duration,
}

impl BodyLimits {
    pub fn new(http: &config::Http) -> Self {
        Self {
            max_bytes: http.max_body_bytes,
            timeout: http.body_timeout,
        }
    }
}

/// A received request body, or the error of receiving it.
///
/// The body is received before the request acquires a concurrency permit or an idempotency lease, so a slow client does
/// not block others. An error is reported by the handler's extractor, so that errors of the middleware take precedence.
pub struct Received(Result<Sensitive<Vec<u8>>, ApiError>);

impl Received {
    /// The body, or `None` if receiving it failed.
    pub fn bytes(&self) -> Option<&[u8]> {
        let bytes = self.0.as_ref().ok()?;
        Some(bytes.expose())
    }
}

/// Receives the body of a request and stores it as the extension `Arc<Received>`.
pub async fn receive_body(limits: BodyLimits, request: Request) -> Request {
    let (mut head, body) = request.into_parts();
    let received = receive_within(limits, &head.headers, body).await;
    head.extensions.insert(Arc::new(Received(received)));
    Request::from_parts(head, Body::empty())
}

/// A complete body within the limits, with a JSON content type.
pub struct JsonBody(Sensitive<Vec<u8>>);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let declared = media_type(request.headers()).is_some_and(|media| is_json(&media));
        let body = take(request)?;
        if !declared && !body.0.expose().is_empty() {
            return Err(ApiError::unsupported_media_type(
                "The body must be application/json.",
            ));
        }
        Ok(body)
    }
}

/// A body with the content type `application/merge-patch+json`. No other content type is accepted.
pub struct MergePatchBody(pub JsonBody);

impl<S: Send + Sync> FromRequest<S> for MergePatchBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        if media_type(request.headers()).as_deref() != Some("application/merge-patch+json") {
            return Err(ApiError::unsupported_media_type(
                "The body must be application/merge-patch+json.",
            ));
        }
        take(request).map(Self)
    }
}

/// Takes the body out of a request. The middleware no longer holds references to it.
fn take(mut request: Request) -> Result<JsonBody, ApiError> {
    let received = request.extensions_mut().remove::<Arc<Received>>();
    let received = received.and_then(Arc::into_inner);
    let Received(body) = received.ok_or_else(|| ApiError::internal("body_not_received"))?;
    body.map(JsonBody)
}

async fn receive_within(
    limits: BodyLimits,
    headers: &HeaderMap,
    body: Body,
) -> Result<Sensitive<Vec<u8>>, ApiError> {
    reject_compression(headers)?;
    let received = tokio::time::timeout(limits.timeout, receive(body, limits.max_bytes));
    let bytes = received.await.map_err(|_| ApiError::body_too_slow())??;
    // This copy lives as long as the request, and is zeroized when dropped.
    Ok(Sensitive::new(Vec::from(bytes)))
}

async fn receive(body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::body_too_large(max_bytes)),
        Err(_) => Err(ApiError::invalid("body", "must be received completely")),
    }
}

fn reject_compression(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(
            ApiError::unsupported_media_type("The body must not be compressed."),
        ),
        _ => Ok(()),
    }
}

/// The declared media type in lower case, without parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media = value.split(';').next().unwrap_or_default();
    Some(media.trim().to_ascii_lowercase())
}

/// `application/json`, `text/json` and any `application/*+json`.
fn is_json(media: &str) -> bool {
    media == "application/json"
        || media == "text/json"
        || (media.starts_with("application/") && media.ends_with("+json"))
}

impl JsonBody {
    pub fn size(&self) -> usize {
        self.0.expose().len()
    }

    /// Deserializes the body, a JSON object.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        self.read_any().map(|Object(value)| value)
    }

    /// Deserializes the body, a JSON object. An empty body is the default `T`.
    pub fn read_or_default<'a, T: Deserialize<'a> + Default>(&'a self) -> Result<T, ApiError> {
        if self.0.expose().is_empty() {
            return Ok(T::default());
        }
        self.read()
    }

    /// Deserializes the body, any JSON value. Errors contain the attribute and the rule, never the value.
    pub fn read_any<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        read_json(self.0.expose()).map_err(|error| ApiError::all_invalid([error]))
    }
}

/// Deserializes untrusted bytes, after checking them against the structural limits.
pub fn read_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, FieldError> {
    let text = std::str::from_utf8(bytes).map_err(|_| FieldError::new("body", "must be UTF-8"))?;
    match json_limits::check(text) {
        Ok(()) => {}
        // The parser knows where.
        Err(json_limits::Excess::Malformed) => {
            parse_json::<IgnoredAny>(text)?;
            return Err(FieldError::new("body", "must be well-formed JSON"));
        }
        Err(excess) => return Err(FieldError::new("body", excess.to_string())),
    }
    parse_json(text)
}

/// Deserializes JSON text. Errors contain the attribute and the rule, never the value.
pub fn parse_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FieldError> {
    if text.trim().is_empty() {
        return Err(FieldError::new("body", "must be JSON; the body is empty"));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        let rule = rule_of(error.inner());
        match error.path().to_string() {
            path if path == "." || path == "?" || !error.inner().is_data() => {
                FieldError::new("body", rule)
            }
            path => FieldError::new(path, rule),
        }
    })?;
    parser
        .end()
        .map_err(|_| FieldError::new("body", "must be one JSON value"))?;
    Ok(value)
}

/// Converts a parser error to a rule. The parser's message quotes the value and names Rust types.
fn rule_of(error: &serde_json::Error) -> String {
    if !error.is_data() {
        let (line, column) = (error.line(), error.column());
        return format!("must be well-formed JSON; the error is at line {line}, column {column}");
    }
    let text = error.to_string();
    let expected = text
        .rsplit_once("expected ")
        .map_or("", |(_, expected)| expected);
    let known = [
        ("struct ", "an object"),
        ("a map", "an object"),
        ("a sequence", "an array"),
        ("a string", "a string"),
        ("a boolean", "true or false"),
    ];
    known
        .into_iter()
        .find(|(words, _)| expected.starts_with(words))
        .map_or("must have the documented type".into(), |(_, what)| {
            format!("must be {what}")
        })
}
