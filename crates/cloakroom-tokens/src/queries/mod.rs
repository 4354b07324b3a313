//! Lists and searches of tokens, in v1 and v2.

mod api;
pub mod cursor;
mod filter;
mod list;
mod list_v1;
mod page;
pub mod parameters;
pub mod query;
mod store;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::{keys, velocity};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::routes;
pub use self::filter::{Condition, Filter, FilterV1};
pub use self::list::{TokenPage, list, search};
pub use self::list_v1::{TokenPageV1, list_v1, search_v1};
pub use self::page::Page;
pub(crate) use self::store::STATEMENTS;
use crate::tokens;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    /// A search for a number confirms whether it is stored, so it counts toward the velocity limit.
    #[error(transparent)]
    Velocity(#[from] velocity::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
