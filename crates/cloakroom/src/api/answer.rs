//! A successful answer with a JSON body.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LINK, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use super::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Since when an operation is deprecated (RFC 9745) and until when it was promised (RFC 8594).
#[derive(Clone, Copy)]
pub struct Deprecated {
    pub since: &'static str,
    pub until: &'static str,
}

/// What a handler returns when it succeeds.
pub struct Answer {
    response: Response,
}

impl Answer {
    /// 200 with a body.
    pub fn ok(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with_body(StatusCode::OK, body)
    }

    /// 201 with a body and the address of what was made.
    pub fn created(location: &str, body: &impl Serialize) -> Result<Self, ApiError> {
        let mut answer = Self::with_body(StatusCode::CREATED, body)?;
        if let Ok(location) = HeaderValue::from_str(location) {
            answer.response.headers_mut().insert(LOCATION, location);
        }
        Ok(answer)
    }

    /// 201 with a body, for what has no address.
    pub fn made(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with_body(StatusCode::CREATED, body)
    }

    /// 200 without a body, where clients expect none.
    pub fn empty() -> Self {
        Self {
            response: StatusCode::OK.into_response(),
        }
    }

    /// 204, which has no body.
    pub fn no_content() -> Self {
        Self {
            response: StatusCode::NO_CONTENT.into_response(),
        }
    }

    /// The same answer, saying that its operation is deprecated and what to use instead.
    pub fn deprecated(mut self, deprecated: Deprecated, successor: &str) -> Self {
        let headers = self.response.headers_mut();
        let since = HeaderValue::from_static(deprecated.since);
        headers.insert(HeaderName::from_static("deprecation"), since);
        let until = HeaderValue::from_static(deprecated.until);
        headers.insert(HeaderName::from_static("sunset"), until);
        let link = format!("<{successor}>; rel=\"successor-version\"");
        if let Ok(link) = HeaderValue::from_str(&link) {
            headers.insert(LINK, link);
        }
        self
    }

    fn with_body(status: StatusCode, body: &impl Serialize) -> Result<Self, ApiError> {
        let bytes = serde_json::to_vec(body).map_err(|_| ApiError::internal("answer_not_json"))?;
        Ok(Self {
            response: (status, [(CONTENT_TYPE, JSON)], bytes).into_response(),
        })
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        self.response
    }
}
