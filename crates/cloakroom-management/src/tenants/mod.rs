//! Tenants: created and listed by the operator, updated and deleted by their own management keys.

mod api;
mod body;
mod cancel;
mod change;
mod create;
mod delete;
mod deletion;
mod examine;
mod find;
mod security_contact;
mod store;
mod sweep;

pub use cloakroom_core::access::Tenant;
use cloakroom_core::access::{LockError, PermissionDenied};
use cloakroom_core::audit::AuditError;
use cloakroom_core::keys;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::routes;
pub use self::cancel::{
    cancel_deletion, cancel_deletion_as_operator, find_deletion, list_deletions,
};
pub use self::change::{TenantChanges, update, update_as_operator};
pub use self::create::{NewTenant, create};
pub use self::delete::{delete, delete_as_operator, delete_due};
pub use self::deletion::Deletion;
pub use self::examine::examine_rows;
pub use self::find::{find, find_own, list, longest_log_retention};
pub use self::security_contact::{find_security_contact, set_security_contact};
pub(crate) use self::store::{DELETION_STATEMENTS, REMOVE_STATEMENTS, STATEMENTS};
pub use self::sweep::sweep;
use crate::members;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("{}", describe(.0))]
    Invalid(Vec<FieldError>),
    #[error("no such tenant")]
    NotFound,
    #[error("the tenant was changed outside the vault; run `cloakroom doctor`")]
    Altered,
    #[error(
        "the deletion was requested by this application: a key of another application with tenant:delete must \
         confirm it"
    )]
    NotConfirmed,
    #[error("no deletion of the tenant is pending")]
    NoDeletion,
    #[error("other tenants were created concurrently; retry the command")]
    Busy,
    #[error("a vault of the environment `test` accepts test tenants only")]
    ProductionTenantInTest,
    #[error(transparent)]
    Members(#[from] members::Error),
    #[error(transparent)]
    AuditError(#[from] AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Stale => Self::Altered,
            LockError::Storage(error) => error.into(),
        }
    }
}

/// All validation errors in one line, for the CLI.
fn describe(broken: &[FieldError]) -> String {
    let rules: Vec<String> = broken
        .iter()
        .map(|broken| format!("{} {}", broken.path, broken.rule))
        .collect();
    rules.join("; ")
}
