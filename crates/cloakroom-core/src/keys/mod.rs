//! Key management: the key hierarchy below the root key, and the keyring of a node.
//!
//! Data keys never leave this module: other modules seal through [`TenantKeys`], open through [`Keyring`], and
//! authenticate rows through [`ControlKey`].

mod api;
mod audit_authority;
mod create;
mod destroy;
mod inspect;
mod keyring;
mod mac_keys;
mod root_key;
mod signing_keys;
mod store;
mod tenant_keys;

use cloakroom_platform::storage;

pub use self::audit_authority::AuditAuthority;
pub use self::create::{create_tenant_keys, initialize};
pub use self::destroy::destroy_tenant_keys;
pub use self::inspect::{KeyReport, inspect};
pub use self::keyring::Keyring;
pub use self::mac_keys::ControlKey;
pub use self::root_key::{RootKey, create_file};
pub use self::signing_keys::SigningKey;
pub(crate) use self::store::STATEMENTS;
pub use self::tenant_keys::{Record, TenantKeys};

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the root key cannot be used: {0}")]
    RootKey(String),
    #[error("the key provider cannot be reached")]
    ProviderUnavailable,
    #[error(
        "this database belongs to the environment `{found}`, this node is configured for `{configured}`"
    )]
    WrongEnvironment { found: String, configured: String },
    #[error(
        "this vault has no keys yet; `cloakroom tenant create` creates them with the first tenant"
    )]
    NotInitialized,
    #[error("a system key is missing although the vault has tenants; restore it from a backup")]
    SystemKeysLost,
    #[error("{0} cannot be unwrapped: it was wrapped by another root key, or altered")]
    WrongKey(String),
    #[error("the vault has no {0} yet")]
    Missing(&'static str),
    /// A sealed value failed to open: altered, moved, or sealed under another key.
    #[error("a sealed value failed its integrity check")]
    Integrity,
    #[error("a value could not be sealed")]
    Seal,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// State of a key's lifecycle. The numbers are stored in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
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
