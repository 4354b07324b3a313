//! API errors: RFC 9457 problem details with a status, a code and a description.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::FieldError;
use super::error_catalog::{CATALOG_PATH, find_error_type};
use crate::storage;
use crate::telemetry::{ErrorCode, TraceId};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json; charset=utf-8");

/// The body of every failed request.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "https://vault.example.com/errors#invalid",
    "title": "One or more validation errors occurred.",
    "status": 400,
    "detail": "1 attribute is invalid.",
    "code": "invalid",
    "trace_id": "35bf0330-bd99-4040-8b62-16ab5154713f",
    "errors": {"data.number": ["must be 13 to 19 digits without separators that pass the Luhn check"]},
}))]
pub struct Problem {
    /// The URL of the description of `code`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uri-reference")]
    kind: Option<String>,
    /// A summary of the error type.
    title: Cow<'static, str>,
    /// The HTTP status code.
    status: u16,
    /// An explanation of this error. Never contains a value from the request.
    detail: Cow<'static, str>,
    /// A stable, machine-readable error code.
    code: &'static str,
    /// Identifies the request in the log of the node, as does the header `BT-TRACE-ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trace_id: Option<String>,
    /// On 400: the invalid attributes by path, each with the rules it violates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    errors: Option<BTreeMap<String, Vec<String>>>,
    /// On an unknown outcome: true if the request can safely be retried with the same idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retry_safe: Option<bool>,
    /// On 424: the external service that failed, and its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    error: Option<Box<Value>>,
}

/// An error response.
#[derive(Debug)]
pub struct ApiError {
    /// Boxed, because every result has room for it.
    problem: Box<Problem>,
    retry_after_seconds: Option<u32>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self {
            problem: Box::new(Problem {
                kind: None,
                title: title.into(),
                status: status.as_u16(),
                detail: detail.into(),
                code,
                trace_id: None,
                errors: None,
                retry_safe: None,
                error: None,
            }),
            retry_after_seconds: None,
        }
    }

    /// 400: one attribute is invalid.
    pub fn invalid(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::all_invalid([FieldError::new(path, rule)])
    }

    /// 400: one or more attributes are invalid.
    pub fn all_invalid(invalid: impl IntoIterator<Item = FieldError>) -> Self {
        let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for FieldError { path, rule, .. } in invalid {
            errors.entry(path).or_default().push(rule);
        }
        let detail = match errors.len() {
            1 => "1 attribute is invalid.".to_owned(),
            count => format!("{count} attributes are invalid."),
        };
        let mut error = Self::new(StatusCode::BAD_REQUEST, "invalid", detail);
        error.problem.title = "One or more validation errors occurred.".into();
        error.problem.errors = Some(errors);
        error
    }

    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "The API key in the BT-API-KEY header is unknown, deleted or expired.",
        )
    }

    /// 401: no key was found where it is expected.
    pub fn no_key(detail: &'static str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    pub fn forbidden(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub fn not_found(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// 405: `allowed` lists the methods that the path supports.
    pub fn method_not_allowed(allowed: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            format!("This path supports only {}.", allowed.replace(',', ", ")),
        )
    }

    pub fn conflict(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// 422: the request is valid, but not possible in the current state.
    pub fn unprocessable(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", detail)
    }

    /// 410: a removed endpoint; `detail` names its replacement.
    pub fn gone(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::GONE, "gone", detail)
    }

    /// 400: a resource that the request refers to is invalid, not an attribute.
    pub fn bad_request(title: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(StatusCode::BAD_REQUEST, "invalid", detail);
        error.problem.title = title.into();
        error.problem.errors = Some(BTreeMap::new());
        error
    }

    pub fn unsupported_media_type(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            detail,
        )
    }

    pub fn body_too_large(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("The body is larger than {limit_bytes} bytes."),
        )
    }

    pub fn body_too_large_for_public_key(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!(
                "The body is larger than {limit_bytes} bytes, the limit of public keys. Send it with a private key."
            ),
        )
    }

    pub fn body_too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            "The body did not arrive in time.",
        )
    }

    /// 408: a destination did not respond in time.
    pub fn destination_timeout(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "destination_timeout", detail)
    }

    /// 502: a destination could not be reached or returned something unusable. `code` identifies the failure.
    pub fn bad_gateway(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, code, detail)
    }

    /// 429: a limit is exceeded. `code` identifies the limit.
    pub fn too_many(
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
        retry_after: Duration,
    ) -> Self {
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
        let seconds = retry_after.as_nanos().div_ceil(1_000_000_000).max(1);
        error.retry_after_seconds = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        error
    }

    /// 424: an external service failed. `error` contains the service and its error.
    pub fn failed_dependency(title: &'static str, detail: &'static str, error: Value) -> Self {
        let status = StatusCode::FAILED_DEPENDENCY;
        let mut failed = Self::new(status, "failed_dependency", detail);
        failed.problem.title = title.into();
        failed.problem.error = Some(Box::new(error));
        failed
    }

    /// 500: an internal error, identified by `code`.
    pub fn internal(code: &'static str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            code,
            "An internal error occurred. The trace id identifies this request in the log.",
        )
    }

    /// 501: a feature of the API that this service does not have. `detail` names the alternative.
    pub fn not_built(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_built", detail)
    }

    /// 503: a dependency is unavailable. The client may retry after a second.
    pub fn unavailable(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        error.retry_after_seconds = Some(1);
        error
    }

    /// 503: a write with an idempotency key may or may not have been committed.
    pub fn outcome_unknown_but_safe() -> Self {
        let mut error = Self::unavailable(
            ErrorCode::OUTCOME_UNKNOWN.0,
            "The write may or may not have been committed. Retry the request with the same idempotency key.",
        );
        error.problem.retry_safe = Some(true);
        error
    }

    /// Sets the `Retry-After` header.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Sets the code.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.problem.code = code;
        self
    }

    /// The problem as a member of a JSON object, for clients that expect it there.
    pub fn into_response_within(self, member: &'static str) -> Response {
        self.respond(Some(member))
    }

    fn respond(self, member: Option<&'static str>) -> Response {
        let media_type = match member {
            Some(_) => JSON,
            None => PROBLEM,
        };
        let body = self.problem.to_json(member);
        let mut response = (self.status(), [(CONTENT_TYPE, media_type)], body).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let extensions = response.extensions_mut();
        extensions.insert(ErrorCode(self.problem.code));
        extensions.insert(Incomplete {
            problem: self.problem.into(),
            member,
        });
        response
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<storage::Error> for ApiError {
    fn from(error: storage::Error) -> Self {
        match error {
            storage::Error::OutcomeUnknown(_) => Self::unavailable(
                ErrorCode::OUTCOME_UNKNOWN.0,
                "The write may or may not have been committed. Check the current state before you retry.",
            ),
            storage::Error::Unavailable(_)
            | storage::Error::TooSlow(_)
            | storage::Error::RolledBack => Self::unavailable(
                "database_unavailable",
                "The database is unavailable. Retry the request.",
            ),
            storage::Error::StaleKey => Self::unavailable(
                "keys_replaced",
                "Encryption keys were replaced during the request. Nothing was changed; retry the request.",
            ),
            // The idempotency middleware looks up the outcome of the other request.
            ref error if error.violated_constraint().is_some_and(is_lost_lease) => {
                Self::conflict("Another request took over this idempotency key. Retry the request.")
            }
            storage::Error::NotSent(kind) => Self::internal(kind),
            storage::Error::Rejected {
                statement,
                ref code,
                ..
            } => {
                tracing::error!(
                    error.kind = "database_refused",
                    statement,
                    sqlstate = code.as_str(),
                    "the database rejected a statement"
                );
                Self::internal("database_refused")
            }
            storage::Error::Address(_)
            | storage::Error::RedisAddress(_)
            | storage::Error::Migrations(_) => Self::internal("database_misconfigured"),
        }
    }
}

/// Whether a response was stored under a lease that another request had taken over.
fn is_lost_lease(constraint: &str) -> bool {
    ["reply_pkey", "reply_has_lease"].contains(&constraint)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.respond(None)
    }
}

/// The problem in an error response, which [`complete_problem`] completes. Shared, because extensions must be cloneable.
#[derive(Clone)]
struct Incomplete {
    problem: Arc<Problem>,
    member: Option<&'static str>,
}

/// Completes an error response with what its origin does not know: where the catalog is, and the id of the request.
pub fn complete_problem(
    mut response: Response,
    base_url: &str,
    trace_id: Option<&TraceId>,
) -> Response {
    let Some(Incomplete { problem, member }) = response.extensions_mut().remove() else {
        return response;
    };
    let mut problem = Arc::unwrap_or_clone(problem);
    problem.kind = Some(problem.type_url(base_url));
    problem.trace_id = trace_id.map(|id| id.as_str().to_owned());
    *response.body_mut() = Body::from(problem.to_json(member));
    // That of the shorter body.
    response.headers_mut().remove(CONTENT_LENGTH);
    response
}

impl Problem {
    fn to_json(&self, member: Option<&str>) -> Vec<u8> {
        let json = match member {
            Some(member) => serde_json::to_vec(&BTreeMap::from([(member, self)])),
            None => serde_json::to_vec(self),
        };
        json.unwrap_or_default()
    }

    fn type_url(&self, base_url: &str) -> String {
        let known = find_error_type(self.code);
        debug_assert!(
            known.map_or(self.status == 500, |known| known.status == self.status),
            "{} {} is not in the catalog of errors",
            self.status,
            self.code
        );
        let code = known.map_or("internal_error", |known| known.code);
        format!("{base_url}{CATALOG_PATH}#{code}")
    }
}
