//! Enrichments: verification of bank accounts, and BIN details.

mod api;
mod bank_account;

use cloakroom_core::access::PermissionDenied;
use cloakroom_platform::api::FieldError;

pub use self::api::routes;
pub use self::bank_account::{AccountStatus, verify_bank_account};
use crate::tokens;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
}
