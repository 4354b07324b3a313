//! Webhooks: the endpoints of a tenant, and the events that each subscribes to.

mod api;
mod create;
mod delete;
mod disable;
mod examine;
mod find;
mod reseal;
mod store;
mod update;
mod webhook;

use cloakroom_core::access::{LockError, PermissionDenied};
use cloakroom_core::audit::AuditError;
use cloakroom_core::current_keys::MayBeStale;
use cloakroom_core::keys;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::routes;
pub use self::create::{CreatedWebhook, create};
pub use self::delete::delete;
pub use self::disable::disable_failing;
pub use self::examine::examine_rows;
pub(crate) use self::find::{Endpoint, find_endpoint, verified};
pub use self::find::{find, list, list_of};
pub use self::reseal::reseal;
pub(crate) use self::store::{STATEMENTS, find as find_stored};
pub use self::update::{enable, update};
pub use self::webhook::{NewWebhook, Webhook};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("no such webhook")]
    NotFound,
    #[error("no such event in the log of the webhook")]
    NoEvent,
    #[error("a tenant can have at most {0} webhooks; delete one first")]
    TooMany(usize),
    #[error("the webhook is disabled; enable it first")]
    Disabled,
    #[error("the webhook was changed outside the vault; run `cloakroom doctor`")]
    Altered,
    #[error(transparent)]
    Audit(#[from] AuditError),
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

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Stale => Self::Altered,
            LockError::Storage(error) => error.into(),
        }
    }
}
