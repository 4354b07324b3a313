//! Finding tokens by something else than their ids: lists and searches, in both versions.

mod api;
pub mod cursor;
mod filter;
mod list;
mod list_old;
mod page;
pub mod parameters;
pub mod query;
mod store;

pub use self::api::routes;
pub use self::filter::{Condition, Filter, OldFilter};
pub use self::list::{Listed, list, search};
pub use self::list_old::{OldListed, list_old, search_old};
pub use self::page::Page;
pub(crate) use self::store::STATEMENTS;
use crate::api::Broken;
use crate::caller::Denied;
use crate::{keys, storage, tokens, velocity};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    /// Searching for a number tells whether it is there, as a fingerprint does.
    #[error(transparent)]
    Velocity(#[from] velocity::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
