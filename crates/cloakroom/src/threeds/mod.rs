//! 3-D Secure sessions: a card on its way through the issuer's authentication.
//!
//! A session is created for a card, told a device, authenticated by the network, and, if the issuer
//! wants to ask the cardholder, challenged. Where it stands is a [`State`]; every step is one
//! statement that starts from the step before it. What the issuer says comes from its network
//! (`receive`), never from the browser (`visit`).

mod api;
mod authenticate;
mod card;
mod create;
mod describe;
mod find;
mod late;
mod receive;
mod results;
mod session;
mod state;
mod store;
mod view;
mod visit;

pub use self::api::routes;
pub(crate) use self::authenticate::ask;
pub use self::authenticate::authenticate;
pub(crate) use self::create::notification_url;
pub use self::create::{Asker, CallbackUrls, NewSession, create};
pub use self::describe::describe;
pub(crate) use self::find::open;
pub use self::find::{find, find_result};
pub use self::late::{settle_late, sweep};
pub use self::receive::receive;
pub use self::results::router as results_router;
pub use self::session::{CardReference, Device, Facts, Hosted, MethodCompletion, Session};
pub use self::state::{Event, STEPS, State, reference};
pub(crate) use self::store::STATEMENTS;
pub(crate) use self::view::method_url;
pub(crate) use self::visit::{
    await_result, complete_challenge, complete_method, find_by_id, serve_page, tell_browser,
};
use crate::api::Broken;
use crate::caller::{Caller, Denied};
use crate::card_networks::Trouble;
use crate::{access, audit, keys, storage, token_intents, tokens};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the tenant may not use 3-D Secure")]
    NotOffered,
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error("no such session")]
    NotFound,
    /// What was asked for does not go with where the session stands.
    #[error("{0}")]
    Conflict(&'static str),
    #[error("session {session:?}: {trouble}")]
    Trouble {
        session: Option<uuid::Uuid>,
        trouble: Trouble,
    },
    #[error(transparent)]
    Unauthorized(#[from] access::Error),
    #[error(transparent)]
    Unrecorded(#[from] audit::Unrecorded),
    #[error(transparent)]
    Token(#[from] tokens::Error),
    #[error(transparent)]
    Intent(#[from] token_intents::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// Refuses tenants that may not use 3-D Secure at all.
pub(crate) fn require_offer(caller: &Caller) -> Result<(), Error> {
    match caller.quotas.threeds {
        true => Ok(()),
        false => Err(Error::NotOffered),
    }
}
