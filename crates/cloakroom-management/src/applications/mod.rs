//! Applications: their keys and grants.

mod api;
mod application;
mod body;
mod create;
mod delete;
mod event;
mod find;
mod key;
mod parameters;
mod requester;
mod store;
mod sweep;
mod template;
mod update;

use cloakroom_core::access::{GrantExceeded, LockError, PermissionDenied};
use cloakroom_core::access_change::AccessChange;
use cloakroom_core::audit::{AuditError, Entry};
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::routes;
pub use self::application::{Application, ApplicationKey, NewApplication};
pub use self::create::{CreatedApplication, create};
pub use self::delete::delete;
pub use self::find::{ApplicationPage, Filter, find, find_own, list};
pub use self::key::{
    CreatedKey, create_key, delete_key, delete_key_by_id, find_key, import_key, key_exists,
    list_keys,
};
pub use self::requester::Requester;
pub(crate) use self::store::{KEY_STATEMENTS, STATEMENTS};
pub use self::sweep::sweep;
pub use self::template::{TEMPLATES, Template};
pub use self::update::{ApplicationChange, update};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error(transparent)]
    GrantExceeded(#[from] GrantExceeded),
    #[error("{}", describe(.0))]
    Invalid(Vec<FieldError>),
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The application of the caller's key was deleted.
    #[error("no valid key")]
    Unauthorized,
    #[error("an application can have at most {0} keys; delete one first")]
    TooManyKeys(i64),
    #[error("the {0} was changed outside the vault; run `cloakroom doctor`")]
    Altered(&'static str),
    #[error(transparent)]
    AuditError(#[from] AuditError),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Stale => Self::Altered("application or another row of its bucket"),
            LockError::Storage(error) => error.into(),
        }
    }
}

/// Commits a write with its audit log entries and the stored response, or rolls back.
async fn commit<T>(
    change: AccessChange<'_>,
    written: Result<T, Error>,
    entries: impl FnOnce(&T) -> Vec<Entry>,
    template: &ResponseTemplate<'_, T>,
) -> Result<T, Error> {
    match written {
        Ok(written) => {
            let response = template.render_pending(&written)?;
            change.commit_with(&entries(&written), response).await?;
            Ok(written)
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

/// The same for writes that revoke access: invalidates the authentication cache of this node once the write may have
/// been committed, even if the outcome is unknown.
async fn commit_and_invalidate<T>(
    vault: &Vault,
    change: AccessChange<'_>,
    written: Result<T, Error>,
    entries: impl FnOnce(&T) -> Vec<Entry>,
    template: &ResponseTemplate<'_, T>,
) -> Result<T, Error> {
    let is_written = written.is_ok();
    let result = commit(change, written, entries, template).await;
    if is_written {
        vault.principals.invalidate_all();
    }
    result
}

/// All validation errors as one text, for the CLI.
fn describe(broken: &[FieldError]) -> String {
    let rules: Vec<String> = broken
        .iter()
        .map(|broken| format!("{} {}", broken.path, broken.rule))
        .collect();
    rules.join("; ")
}
