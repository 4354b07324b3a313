//! Checkout sessions: the hosted card form, for merchants without a front end of their own.
//!
//! A private key creates a session and redirects the cardholder to its page. The page creates one token intent, and
//! redirects the cardholder back. The secret in the page's URL gives access to that page only: nothing that was entered
//! can be read with it.

mod api;
mod browser;
mod card;
mod create;
mod find;
mod form;
mod new_session;
mod reseal;
mod sealed;
mod session;
mod store;
mod submit;
mod sweep;

use cloakroom_core::access::{ApplicationKind, PermissionDenied};
use cloakroom_core::current_keys::MayBeStale;
use cloakroom_core::{audit, keys};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;
use cloakroom_tokens::intents;

pub use self::api::routes;
pub use self::browser::routes as browser_routes;
pub use self::create::{CreatedSession, create};
pub use self::find::find;
pub use self::new_session::NewSession;
pub use self::reseal::reseal;
pub use self::session::{Session, Status};
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("only {0} applications may do this")]
    WrongKind(ApplicationKind),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("checkout session not found")]
    NotFound,
    #[error("the checkout session is complete or has expired")]
    NotOpen,
    #[error("the host of a URL of the session is no longer allowed")]
    HostNotAllowed,
    #[error(transparent)]
    Intent(#[from] intents::Error),
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl MayBeStale for Error {
    fn is_stale_key(&self) -> bool {
        match self {
            Self::Storage(error) => error.is_stale_key(),
            Self::Intent(error) => error.is_stale_key(),
            _ => false,
        }
    }
}
