//! Usage reports of a tenant.

mod api;
mod store;
mod usage;

use cloakroom_core::access::PermissionDenied;
use cloakroom_platform::storage;

pub use self::api::routes;
pub(crate) use self::store::STATEMENTS;
pub use self::usage::{TypeUsage, Usage, usage};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
