//! Tokenizes and detokenizes JSON documents.

mod api;
mod detokenize;
mod enrichments;
mod path;
mod tokenize;
mod values;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::{audit, keys};
use cloakroom_platform::api::FieldError;

pub use self::api::routes;
pub use self::detokenize::detokenize;
pub use self::tokenize::{TokenizedDocument, tokenize};
pub use self::values::{LoadedValues, load};
use crate::{intents, tokens};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    /// Ids are not secret: they appear in URLs.
    #[error("tokens not found: {}", .0.join(", "))]
    Unknown(Vec<String>),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    #[error(transparent)]
    Intents(#[from] intents::Error),
    #[error(transparent)]
    Audit(#[from] audit::AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
}
