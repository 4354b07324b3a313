//! Token intents: short-lived data that is converted into a token or expires, after hours at most.
//!
//! The module `tokens` converts intents: it takes the data from `open` and deletes the intent in the statement that
//! inserts the token.

mod api;
mod create;
mod delete;
mod find;
mod intent;
mod redigest;
mod reseal;
mod store;
mod sweep;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::current_keys::MayBeStale;
use cloakroom_core::{audit, keys, velocity};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::{IntentBody, routes};
pub use self::create::{NewIntent, PreparedIntent, create, insert_within, prepare};
pub use self::delete::delete;
pub use self::find::{exists, find, open, read_entries, reveal};
pub use self::intent::{IntentView, OpenedIntent, RevealedIntent, TokenIntent};
pub use self::redigest::{count_former, redigest};
pub use self::reseal::reseal;
pub(crate) use self::store::{STATEMENTS, all_intents_locked, deleted_intents, locked_intents};
pub use self::sweep::sweep;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("token intent not found")]
    NotFound,
    #[error(transparent)]
    Velocity(#[from] velocity::Error),
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl MayBeStale for Error {
    fn is_stale_key(&self) -> bool {
        matches!(self, Self::Storage(storage::Error::StaleKey))
    }
}
