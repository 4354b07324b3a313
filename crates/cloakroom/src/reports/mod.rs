//! Reports: what a tenant has and uses, counted.

mod api;
mod store;
mod usage;

pub use self::api::routes;
pub(crate) use self::store::STATEMENTS;
pub use self::usage::{KindUsage, Usage, usage};
use crate::caller::Denied;
use crate::storage;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
