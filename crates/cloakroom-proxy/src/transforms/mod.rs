//! Transforms: changes that a pre-configured proxy makes to requests and responses, without code.
//!
//! Reading order: [`TransformBody`] is a transform as it is sent and stored, `compile` validates it, `apply` runs a
//! list of them in order. One file per kind: `mask`, `tokenize`, `append`. `template` evaluates their expressions.

mod append;
mod apply;
mod body;
mod compile;
mod location;
mod mask;
mod mask_workers;
mod template;
mod tokenize;

use std::collections::BTreeMap;
use std::sync::Arc;

use cloakroom_core::access::Principal;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{ApiError, FieldError};
use cloakroom_platform::ids::TenantId;
use cloakroom_tokens::tokens;

pub use self::apply::{apply_request, apply_response};
pub use self::body::TransformBody;
pub use self::compile::{Direction, Rejection, Transform, compile, refers_to_configuration};
pub use self::mask_workers::MaskWorkers;

/// Maximum size of a body that is transformed.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The configuration values of a proxy.
pub type Configuration = BTreeMap<String, Sensitive<String>>;

/// The transforms of a proxy, and whose permissions they have.
#[derive(Debug)]
pub struct Transforms {
    pub tenant: TenantId,
    /// The application whose permissions `tokenize` has. `None` if the proxy has none, or it was deleted.
    pub application: Option<Arc<Principal>>,
    /// Request transforms insert these values into what is sent.
    pub configuration: Arc<Configuration>,
    /// With any of these, the request body is received completely before it is sent.
    pub request: Vec<Transform>,
    /// With any of these, a successful response is received completely before it is returned.
    pub response: Vec<Transform>,
}

impl Transforms {
    /// Whether request transforms insert configuration values.
    pub fn send_configuration(&self) -> bool {
        self.request.iter().any(Transform::refers_to_configuration)
    }

    /// Whether a request transform parses the body that is sent.
    pub fn append_json(&self) -> bool {
        let appends = |it: &Transform| matches!(it, Transform::AppendJson(_));
        self.request.iter().any(appends)
    }

    /// Whether response transforms replace what the caller must not see.
    pub fn hide_in_response(&self) -> bool {
        let hides = |it: &Transform| matches!(it, Transform::Mask(_) | Transform::Tokenize(_));
        self.response.iter().any(hides)
    }

    /// Whether a transform refers to the content of `BT-ENCRYPTED`.
    pub fn read_encrypted(&self) -> bool {
        let mut all = self.request.iter().chain(&self.response);
        all.any(Transform::refers_to_encrypted)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was sent to the destination.
    #[error("request transform {} ({}) failed: {}", .0.index, .0.kind, .0.reason)]
    Request(Failure),
    /// The destination responded successfully, and its response is not returned.
    #[error("response transform {} ({}) failed: {}", .0.index, .0.kind, .0.reason)]
    Response(Failure),
}

/// The transform that failed, and why.
#[derive(Debug)]
pub struct Failure {
    /// Position in its list, from 0.
    pub index: usize,
    pub kind: &'static str,
    pub reason: Reason,
}

impl Error {
    /// Whether the failure of a request transform may depend on values that were inserted into the request. Tokens are
    /// created from the request as it was sent.
    pub fn depends_on_values(&self) -> bool {
        match self {
            Self::Request(failure) => {
                !matches!(failure.reason, Reason::Token(_) | Reason::NoApplication)
            }
            Self::Response(_) => false,
        }
    }
}

/// Why a transform failed. The text never contains a value.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body is compressed or partial")]
    Encoded,
    #[error("the body is not JSON within the limits of the API")]
    NotJson,
    #[error("the body is not UTF-8 text")]
    NotText,
    #[error("the location does not exist in the body")]
    NoLocation,
    #[error("the value is no valid header value")]
    HeaderValue,
    #[error("an expression failed: {0}")]
    Expression(String),
    #[error("the expression matches more than {0} times")]
    TooManyMatches(usize),
    #[error("masking takes too long; simplify the expression")]
    TooSlow,
    #[error("the node masks too many responses")]
    Busy,
    #[error("a card number remains in the body")]
    Remains,
    #[error(
        "a tokenized card number remains in the response; replace it with append_json or a mask"
    )]
    NotReplaced,
    #[error("the proxy has no application, or its application was deleted")]
    NoApplication,
    #[error("the token was rejected: {}", describe(.0))]
    Token(tokens::Error),
}

/// Validation errors name attributes and rules. Other errors are not the transform's, and are not described.
fn describe(error: &tokens::Error) -> String {
    match error {
        tokens::Error::Invalid(broken) => {
            let rules = broken
                .iter()
                .map(|FieldError { path, rule, .. }| format!("{path} {rule}"));
            rules.collect::<Vec<_>>().join("; ")
        }
        tokens::Error::PermissionDenied(_)
        | tokens::Error::NeedsReveal(_)
        | tokens::Error::IdTaken
        | tokens::Error::Velocity(_) => error.to_string(),
        _ => "it could not be stored".to_owned(),
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::Request(Failure {
                reason: Reason::Token(error),
                ..
            }) => error.into(),
            Error::Request(_) => Self::bad_request(
                "Invalid proxy request",
                format!("The request was not sent: {detail}."),
            ),
            Error::Response(_) => Self::bad_gateway(
                "response_not_transformed",
                format!(
                    "The destination accepted the request, but its response is not returned: {detail}. \
                     Check the state at the destination before you retry."
                ),
            ),
        }
    }
}
