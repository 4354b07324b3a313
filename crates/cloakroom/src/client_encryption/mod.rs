//! Client encryption: keys that clients encrypt data to before they send it, and opening what they
//! sent.
//!
//! Rooms that take data also take it encrypted: they ask [`given_data`] for it before they check
//! anything else, and from then on it is like any other.

mod api;
mod create;
mod delete;
mod find;
mod jwe;
mod key;
mod open;
mod store;
mod sweep;

pub use self::api::routes;
pub use self::create::create;
pub use self::delete::delete;
pub use self::find::{find, list};
pub use self::key::{ClientKey, CreatedClientKey};
pub use self::open::{GivenData, given_data, open_encrypted};
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;
use crate::api::Broken;
use crate::caller::Denied;
use crate::{audit, keys, storage};

/// Whether a text is of the one kind of encryption that can be opened, for fuzz targets.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn is_understood(text: &str) -> bool {
    jwe::Jwe::parse(text).is_some()
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Broken),
    #[error("no such key")]
    NotFound,
    #[error("a tenant has at most {0} client encryption keys, and this one has them all")]
    TooMany(i64),
    #[error(transparent)]
    Unrecorded(#[from] audit::Unrecorded),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
