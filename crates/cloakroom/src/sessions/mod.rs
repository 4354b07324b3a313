//! Sessions: a browser asks for a key, a server grants rights to it, for minutes or hours.

mod api;
mod authorize;
mod create;
mod store;
mod subset;
mod sweep;

pub use self::api::routes;
pub use self::authorize::{NewAuthorization, authorize};
pub use self::create::{CreatedSession, create};
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;
use crate::access::ApplicationKind;
use crate::api::Broken;
use crate::caller::{Caller, Standing};
use crate::keys::ControlKey;
use crate::storage;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("only {0} applications may do this")]
    WrongKind(ApplicationKind),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error("no such nonce")]
    NotFound,
    #[error("the nonce was used already")]
    Used,
    #[error("the session was changed outside the vault")]
    Altered,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// What the digest of a nonce is for.
const NONCE: &str = "session-nonce.v1";

/// The digest under which a nonce is kept, and found again in its tenant.
fn nonce_mac(control: &ControlKey, caller: &Caller, nonce: &str) -> [u8; 32] {
    let tenant = caller.tenant.uuid;
    control.authenticate(NONCE, &[tenant.as_bytes(), nonce.as_bytes()])
}

/// Sessions are asked for by applications themselves, never by other sessions.
fn require_kind(caller: &Caller, kind: ApplicationKind) -> Result<(), Error> {
    let is_application = caller.standing == Standing::Application;
    match is_application && caller.application_kind == kind {
        true => Ok(()),
        false => Err(Error::WrongKind(kind)),
    }
}
