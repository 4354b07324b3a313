//! 3-D Secure sessions.
//!
//! A session is created for a card, gets device data, is authenticated through the card's network, and goes through a
//! challenge if the issuer requires one. Its progress is a [`State`]; every transition is one statement, conditional on
//! the previous version of the session. The outcome comes from the network (`receive`), never from the browser
//! (`browser`).

mod api;
mod authenticate;
mod browser;
mod card;
mod create;
mod device;
mod find;
mod new_session;
mod plan;
mod receive;
mod results;
mod retention;
mod sealed;
mod session;
mod state;
mod store;
mod view;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::caller::Caller;
use cloakroom_core::{access, audit, keys};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;
use cloakroom_tokens::{intents, tokens};

pub use self::api::routes;
pub use self::authenticate::{authenticate, authenticate_session};
pub use self::browser::{
    await_result, complete_challenge, complete_method, find_by_id, issue_nonce, store_browser_info,
};
pub use self::create::{create, notification_url};
pub use self::device::update_device;
pub use self::find::{find, find_result, load};
pub use self::new_session::{CallbackUrls, ClientInfo, NewSession};
pub use self::receive::receive;
pub use self::results::router as results_router;
pub use self::retention::{sweep, time_out_overdue};
pub use self::sealed::reseal;
pub use self::session::{CardReference, Device, Facts, Hosted, MethodCompletion, Session};
pub use self::state::{Event, State, TRANSITIONS, reference};
pub(crate) use self::store::STATEMENTS;
pub use self::view::method_url;
use crate::card_testing;
use crate::networks::NetworkFailure;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("3-D Secure is not enabled for the tenant")]
    NotEnabled,
    #[error("a public key must not create a session with a hosted page")]
    HostedByPublicKey,
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("session not found")]
    NotFound,
    /// The request conflicts with the state of the session.
    #[error("{0}")]
    Conflict(&'static str),
    #[error("session {session:?}: {failure}")]
    Network {
        session: Option<uuid::Uuid>,
        failure: NetworkFailure,
    },
    #[error(transparent)]
    CardTesting(#[from] card_testing::Error),
    #[error(transparent)]
    Unauthorized(#[from] access::Error),
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
    #[error(transparent)]
    Token(#[from] tokens::Error),
    #[error(transparent)]
    Intent(#[from] intents::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// The error in the log of a job.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Network { .. } => "network_failed",
            _ => "threeds_failed",
        }
    }
}

/// Rejects tenants that 3-D Secure is not enabled for.
pub fn require_threeds(caller: &Caller) -> Result<(), Error> {
    match caller.quotas.threeds {
        true => Ok(()),
        false => Err(Error::NotEnabled),
    }
}
