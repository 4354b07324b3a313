//! What is known about a bank account, or about the first digits of a card.

mod api;
mod bank_account;

pub use self::api::routes;
pub use self::bank_account::{AccountStatus, verify_bank_account};
use crate::api::Broken;
use crate::caller::Denied;
use crate::tokens;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
}
