//! A successful answer with a JSON body.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use super::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

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

    /// 204, which has no body.
    pub fn no_content() -> Self {
        Self {
            response: StatusCode::NO_CONTENT.into_response(),
        }
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
