//! Token intents: data that waits, for hours at most, to become a token or to be forgotten.
//!
//! Becoming a token is the work of the room `tokens`: it takes the data from `open` and removes the
//! row in the statement that keeps the token.

mod api;
mod create;
mod delete;
mod find;
mod intent;
mod store;
mod sweep;

pub use self::api::routes;
pub use self::create::{NewIntent, create};
pub use self::delete::delete;
pub use self::find::find;
pub(crate) use self::find::{exists, open};
pub use self::intent::{IntentView, TokenIntent};
pub(crate) use self::store::{STATEMENTS, all_held, consumed, held};
pub use self::sweep::sweep;
use crate::api::Broken;
use crate::caller::Denied;
use crate::{audit, keys, storage, velocity};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error("no such token intent")]
    NotFound,
    #[error(transparent)]
    Velocity(#[from] velocity::Error),
    #[error(transparent)]
    Unrecorded(#[from] audit::Unrecorded),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
