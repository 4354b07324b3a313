//! Client encryption: keys for clients to encrypt data to, and decryption of that data.
//!
//! Modules that accept data also accept it encrypted: they call [`resolve_request_data`] before any other validation, and then
//! treat the result like plaintext data.

mod api;
mod create;
mod delete;
mod find;
mod jwe;
mod key;
mod open;
mod reseal;
mod store;
mod sweep;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::current_keys::MayBeStale;
use cloakroom_core::{audit, keys};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::routes;
pub use self::create::{NewKey, create};
pub use self::delete::delete;
pub use self::find::{find, find_public_key, list};
pub use self::key::{Binding, ClientKey, CreatedClientKey};
pub use self::open::{RequestData, SentData, resolve_request_data};
pub use self::reseal::reseal;
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;

/// The id of the key that a JWE is encrypted to.
pub fn key_id(text: &str) -> Option<String> {
    jwe::Jwe::parse(text).map(|jwe| jwe.key_id.to_string())
}

/// Whether a text is a supported JWE, for fuzz targets.
#[cfg(any(test, feature = "fuzzing"))]
pub fn is_supported_jwe(text: &str) -> bool {
    jwe::Jwe::parse(text).is_some()
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("no such key")]
    NotFound,
    #[error("the tenant already has {0} client encryption keys, the maximum")]
    TooMany(i64),
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
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
