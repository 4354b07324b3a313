//! Why an invocation failed, and its response.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use cloakroom_core::access::PermissionDenied;
use cloakroom_core::audit::AuditError;
use cloakroom_egress::{Denied, InvalidUrl, NotSent, SendError};
use cloakroom_platform::api::{ApiError, FieldError};
use cloakroom_tokens::documents;

/// The member that clients expect an error of the proxy in. The response of a destination never has it from us.
const MEMBER: &str = "proxy_error";
const INVALID: &str = "Invalid proxy request";

#[derive(Debug)]
pub(super) enum Error {
    /// The request has already passed this proxy.
    Loop,
    /// Neither `BT-PROXY-URL` nor `BT-PROXY-KEY`.
    NoTarget,
    /// No proxy has this key, or it belongs to another tenant.
    UnknownProxy,
    /// The tenant has switched off ephemeral proxies.
    EphemeralDisabled,
    /// Sessions and public keys may invoke only pre-configured proxies.
    EphemeralNeedsPrivateKey,
    InvalidUrl(InvalidUrl),
    /// The proxy does not allow the method or the path.
    OperationNotAllowed,
    /// The proxy does not allow an expression in this place.
    PlaceNotAllowed(String),
    Invalid(FieldError),
    /// An expression of a caller that sees all values failed, or a request transform, which may contain configuration
    /// values.
    NotEvaluated,
    TooManyExpressions(usize),
    TooManyTokens(usize),
    /// The body is too large to replace its expressions.
    ExpressionInLargeBody {
        limit: usize,
        was_sent: bool,
    },
    BodyTooLarge(usize),
    /// The caller stopped sending the body.
    IncompleteBody {
        was_sent: bool,
    },
    Send(SendError),
    /// The destination responded, but the response cannot be transformed.
    ResponseNotTransformed,
    /// The response contains a value that the caller may use but not see.
    ResponseWithheld,
    /// Any other error, with a status of its own.
    Api(Box<ApiError>),
}

impl Error {
    pub(super) fn invalid(error: FieldError) -> Self {
        Self::Invalid(error)
    }

    pub(super) fn invalid_at(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid(FieldError::new(path, rule))
    }
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Self::Api(Box::new(error))
    }
}

impl From<PermissionDenied> for Error {
    fn from(denied: PermissionDenied) -> Self {
        ApiError::from(denied).into()
    }
}

impl From<AuditError> for Error {
    fn from(error: AuditError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<InvalidUrl> for Error {
    fn from(error: InvalidUrl) -> Self {
        Self::InvalidUrl(error)
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Self::Send(SendError::Denied(denied))
    }
}

impl From<documents::Error> for Error {
    fn from(error: documents::Error) -> Self {
        match error {
            documents::Error::Unknown(ids) => {
                let detail = format!("Failed to detokenize some tokens: {}", ids.join(", "));
                ApiError::bad_request(INVALID, detail).into()
            }
            error => ApiError::from(error).into(),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response_within(MEMBER)
    }
}

/// The response to a request that no handler has seen.
pub(super) fn reject(error: ApiError) -> Response {
    Error::from(error).into_response()
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let invalid = |detail: Cow<'static, str>| Self::bad_request(INVALID, detail);
        match error {
            Error::Loop => invalid(
                "The request has already passed this proxy: its destination leads back to it.".into(),
            )
            .with_code("proxy_loop"),
            Error::NoTarget => invalid(
                "Send the URL of the destination in BT-PROXY-URL, or the key of a pre-configured proxy in BT-PROXY-KEY."
                    .into(),
            ),
            Error::UnknownProxy => Self::not_found("No proxy has this BT-PROXY-KEY."),
            Error::EphemeralDisabled => Self::forbidden(
                "The tenant setting disable_ephemeral_proxy is on. Invoke a pre-configured proxy with BT-PROXY-KEY.",
            ),
            Error::EphemeralNeedsPrivateKey => Self::forbidden(
                "BT-PROXY-URL requires the key of a private application. Invoke a pre-configured proxy with BT-PROXY-KEY.",
            ),
            Error::InvalidUrl(rule) => {
                invalid(format!("The URL of the destination {rule}.").into()).with_code("invalid_url")
            }
            Error::OperationNotAllowed => not_allowed("this method and path"),
            Error::PlaceNotAllowed(place) => not_allowed(&format!("an expression in {place}")),
            Error::Invalid(error) => Self::all_invalid([error]),
            Error::NotEvaluated => invalid(
                "An expression or a request transform could not be evaluated, or its value does not fit its place. \
                 Nothing was sent."
                    .into(),
            )
            .with_code("not_evaluated"),
            Error::TooManyExpressions(limit) => {
                invalid(format!("The request has more than {limit} expressions.").into())
            }
            Error::TooManyTokens(limit) => invalid(
                format!("The request refers to more than {limit} tokens and token intents.").into(),
            ),
            Error::ExpressionInLargeBody { limit, was_sent } => invalid(
                format!(
                    "The body has an expression, but is larger than {limit} bytes, so its expressions are not replaced. {}",
                    sent(was_sent)
                )
                .into(),
            )
            .with_code("expression_in_large_body"),
            Error::BodyTooLarge(limit) => Self::body_too_large(limit),
            Error::IncompleteBody { was_sent } => {
                invalid(format!("The body was not received completely. {}", sent(was_sent)).into())
                    .with_code("incomplete_body")
            }
            Error::Send(error) => send_error(error),
            Error::ResponseNotTransformed => Self::bad_gateway(
                "response_not_transformed",
                "The destination processed the request, but its response could not be transformed and is withheld. Check \
                 the result at the destination, then correct the response transforms of the proxy.",
            ),
            Error::ResponseWithheld => Self::bad_gateway(
                "response_withheld",
                "The destination processed the request, but its response contains a card number or a configuration value that \
                 the application may use but not read, or cannot be searched for them. It is withheld. Check the result at the \
                 destination.",
            ),
            Error::Api(error) => *error,
        }
    }
}

fn not_allowed(what: &str) -> ApiError {
    ApiError::forbidden(format!(
        "The proxy does not allow {what}. Nothing was sent. See `allowed_requests` of the proxy.",
    ))
}

fn send_error(error: SendError) -> ApiError {
    let detail = |error: &dyn std::fmt::Display, advice: &str| {
        let text = error.to_string();
        let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        format!("{}{rest}. {advice}", first.to_uppercase())
    };
    match error {
        SendError::Denied(denied) => {
            let detail = detail(&denied, "Nothing was sent.");
            ApiError::forbidden(detail).with_code(denied.kind())
        }
        SendError::NotSent(not_sent) => {
            let advice = match not_sent {
                NotSent::Dns => "Nothing was sent. Check the host of the URL.",
                _ => "Nothing was sent. Retry the request.",
            };
            ApiError::bad_gateway("destination_unreachable", detail(&not_sent, advice))
        }
        SendError::Tls => {
            let advice = "Nothing was sent. The destination needs a valid certificate for its host and TLS 1.2 or newer.";
            ApiError::bad_gateway("destination_tls", detail(&error, advice))
        }
        SendError::Timeout => ApiError::destination_timeout(detail(&error, UNKNOWN)),
        SendError::BadResponse => {
            ApiError::bad_gateway("destination_bad_response", detail(&error, UNKNOWN))
        }
        SendError::Interrupted | SendError::RequestBody => {
            ApiError::bad_gateway("destination_interrupted", detail(&error, UNKNOWN))
        }
        SendError::Overloaded => {
            let advice = "Nothing was sent. Retry later.";
            ApiError::unavailable("destination_overloaded", detail(&error, advice))
        }
        SendError::CircuitOpen => {
            let advice = "Nothing was sent. Retry in a few seconds.";
            ApiError::unavailable("destination_circuit_open", detail(&error, advice)).retry_after(5)
        }
    }
}

const UNKNOWN: &str =
    "It may have processed the request: check the result at the destination before you retry.";

fn sent(was_sent: bool) -> &'static str {
    match was_sent {
        true => "A part of the body was sent; the destination received no complete request.",
        false => "Nothing was sent.",
    }
}
