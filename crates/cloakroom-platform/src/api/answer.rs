//! Successful responses with a JSON body.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// The response of a handler that succeeds.
#[derive(Clone)]
pub struct Answer {
    pub status: StatusCode,
    /// The URL of the created resource.
    pub location: Option<String>,
    /// Empty, or JSON.
    pub body: Vec<u8>,
}

impl Answer {
    /// 200 with a body.
    pub fn ok(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with_body(StatusCode::OK, body)
    }

    /// 201 with a body and the URL of the created resource.
    pub fn created(location: String, body: &impl Serialize) -> Result<Self, ApiError> {
        let response = Self::with_body(StatusCode::CREATED, body)?;
        Ok(Self {
            location: Some(location),
            ..response
        })
    }

    /// 201 with a body, for a resource without a URL.
    pub fn made(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with_body(StatusCode::CREATED, body)
    }

    /// 200 without a body, where clients expect none.
    pub fn empty() -> Self {
        Self::new(StatusCode::OK, None, Vec::new())
    }

    /// 204 without a body.
    pub fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, None, Vec::new())
    }

    /// A response from its parts, such as a stored one.
    pub fn new(status: StatusCode, location: Option<String>, body: Vec<u8>) -> Self {
        Self {
            status,
            location,
            body,
        }
    }

    /// The response without these members of its body.
    pub fn without(mut self, members: &[&str]) -> Self {
        let body = serde_json::from_slice::<Map<String, Value>>(&self.body);
        if let (false, Ok(mut body)) = (members.is_empty(), body) {
            body.retain(|name, _| !members.contains(&name.as_str()));
            self.body = Value::Object(body).to_string().into_bytes();
        }
        self
    }

    fn with_body(status: StatusCode, body: &impl Serialize) -> Result<Self, ApiError> {
        let bytes =
            serde_json::to_vec(body).map_err(|_| ApiError::internal("response_not_json"))?;
        Ok(Self::new(status, None, bytes))
    }
}

/// Marks a response whose body is shared by all requests and so takes no memory of its own. As an extension of the
/// response, it exempts the body from the limits on unsent bytes.
#[derive(Clone, Copy, Debug)]
pub struct SharedBody;

/// Marks a response whose body is streamed from elsewhere: only the parts that have arrived take memory. As an extension
/// of the response, it makes its bytes count as unsent one by one.
#[derive(Clone, Copy, Debug)]
pub struct StreamedBody;

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let has_body = !self.body.is_empty();
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if has_body {
            headers.insert(CONTENT_TYPE, JSON);
        }
        if let Some(Ok(location)) = self.location.map(HeaderValue::try_from) {
            headers.insert(LOCATION, location);
        }
        response
    }
}
