//! The keyring: which keys seal what, how they are kept, and who holds the root of them.
//!
//! Nothing outside this room sees a data key: other rooms seal through [`TenantKeys`], open through
//! [`Keyring`], and authenticate rows through [`ControlKey`].

mod api;
mod create;
mod destroy;
mod examine;
mod keyring;
mod mac_keys;
mod root_key;
mod store;
mod tenant_keys;

pub use self::create::{create_tenant_keys, initialize};
pub use self::destroy::destroy_tenant_keys;
pub use self::examine::{Examined, examine};
pub use self::keyring::Keyring;
pub use self::mac_keys::{AuditKey, ControlKey};
pub use self::root_key::{RootKey, create_file};
pub(crate) use self::store::STATEMENTS;
pub use self::tenant_keys::{Record, TenantKeys};
use crate::storage;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the root key cannot be used: {0}")]
    RootKey(String),
    #[error("the key provider cannot be reached")]
    ProviderUnavailable,
    #[error(
        "this database belongs to the environment `{found}`, this node is set to `{configured}`"
    )]
    WrongEnvironment { found: String, configured: String },
    #[error(
        "this vault has no keys yet: `cloakroom tenant create` makes them with the first tenant"
    )]
    NotInitialized,
    #[error("a key of the vault itself is gone, although it has tenants: restore it from a backup")]
    SystemKeysLost,
    #[error("{0} cannot be unwrapped: it was wrapped by another root key, or altered")]
    WrongKey(String),
    #[error("the vault has no {0} yet")]
    Missing(&'static str),
    /// A sealed value that does not open: altered, moved, or sealed under another key.
    #[error("a sealed value failed its integrity check")]
    Integrity,
    #[error("a value could not be sealed")]
    Seal,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// Where a key stands in its life. The numbers are in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Active = 2,
    DecryptOnly = 3,
}

impl State {
    /// Keys in other states (1 pre-active, 4 destroyed) are not loaded.
    fn from_number(number: i16) -> Option<Self> {
        match number {
            2 => Some(Self::Active),
            3 => Some(Self::DecryptOnly),
            _ => None,
        }
    }
}
