//! Tenants: made and found by the operator, changed and deleted by their own management keys.

mod api;
mod change;
mod create;
mod delete;
mod find;
mod security_contact;
mod store;
mod sweep;

pub use self::api::routes;
pub use self::change::{Changes, update, update_by_command};
pub use self::create::{NewTenant, create};
pub use self::delete::delete;
pub(crate) use self::delete::delete_by_command;
pub use self::find::{find, find_own, list, longest_log_retention};
pub use self::security_contact::{find_security_contact, set_security_contact};
pub(crate) use self::store::{REMOVE_STATEMENTS, STATEMENTS};
pub use self::sweep::sweep;
pub use crate::access::Tenant;
use crate::api::Broken;
use crate::audit::Unrecorded;
use crate::caller::Denied;
use crate::{keys, members, storage};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("{}", told(.0))]
    Invalid(Vec<Broken>),
    #[error("no such tenant")]
    NotFound,
    #[error("the tenant was changed outside the vault")]
    Altered,
    #[error("other tenants were made at the same moment; try again")]
    Busy,
    #[error("a vault of the environment `test` keeps test tenants only")]
    ProductionTenantInTest,
    #[error(transparent)]
    Members(#[from] members::Error),
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// For commands, which tell all of it in one line.
fn told(broken: &[Broken]) -> String {
    let rules: Vec<String> = broken
        .iter()
        .map(|broken| format!("{} {}", broken.path, broken.rule))
        .collect();
    rules.join("; ")
}
