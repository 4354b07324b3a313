//! Whole JSON documents: every value in one turned into a token, and back.

mod api;
mod detokenize;
mod enrichments;
mod place;
mod tokenize;

pub use self::api::routes;
pub use self::detokenize::detokenize;
pub use self::tokenize::{Tokenized, tokenize};
use crate::api::Broken;
use crate::caller::Denied;
use crate::{keys, tokens};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    /// Ids are no secrets: they stand in addresses.
    #[error("some tokens do not exist: {}", .0.join(", "))]
    Unknown(Vec<String>),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
}
