//! Sessions: short-lived keys that a browser requests and a server authorizes.

mod api;
mod authorize;
mod create;
mod renew;
mod store;
mod sweep;

use cloakroom_core::access::{ApplicationKind, PrincipalKind, SessionRow};
use cloakroom_core::caller::Caller;
use cloakroom_crypto::secret_digest;
use cloakroom_platform::api::{FieldError, format_utc};
use cloakroom_platform::storage;
use serde_json::{Value, json};

pub use self::api::routes;
pub use self::authorize::{NewAuthorization, authorize};
pub use self::create::{CreatedSession, create};
pub use self::renew::renew_macs;
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("only {0} applications may do this")]
    WrongKind(ApplicationKind),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("no such nonce")]
    NotFound,
    #[error("the session is already authorized")]
    AlreadyAuthorized,
    #[error("the session was changed outside the vault")]
    Altered,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// Domain of the digest of a nonce.
const NONCE_DOMAIN: &str = "session-nonce.v2";

/// The digest under which a nonce is stored and looked up within its tenant.
fn nonce_digest(caller: &Caller, nonce: &str) -> [u8; 32] {
    let tenant = caller.tenant.uuid;
    secret_digest(NONCE_DOMAIN, &[tenant.as_bytes(), nonce.as_bytes()])
}

/// Only applications create and authorize sessions, never other sessions.
fn require_kind(caller: &Caller, kind: ApplicationKind) -> Result<(), Error> {
    let is_application = caller.kind == PrincipalKind::Application;
    match is_application && caller.application_kind == kind {
        true => Ok(()),
        false => Err(Error::WrongKind(kind)),
    }
}

/// The session as its events show it.
fn event_object(session: &SessionRow) -> Value {
    json!({
        "id": session.id,
        "created_by": session.application,
        "expires_at": format_utc(session.expires_at),
        "issued_to_application": {"id": session.application},
    })
}
