//! Key management: the key hierarchy below the root key, and the keyring of a node.
//!
//! Data keys never leave this module: other modules seal through [`TenantKeys`], open through [`Keyring`], and
//! authenticate rows through [`ControlKey`].

mod api;
mod audit_authority;
mod control_key;
mod create;
mod destroy;
mod inspect;
mod keyring;
mod keyset;
mod load;
mod rotation;
mod security_code_kek;
mod signing_keys;
mod store;
mod tenant_cache;
mod tenant_keys;

use cloakroom_crypto::{Key, Purpose, RootKek, WrapContext, Wraps};
pub use cloakroom_custody::{Failure, RootKey, RootKeys, create_file};
use cloakroom_platform::storage;

pub use self::audit_authority::{AuditAuthority, AuthorityKey, proof_heading};
pub(crate) use self::control_key::version_of;
pub use self::control_key::{ControlKey, Renewal, StoredMac};
pub use self::create::{NewTenantKeys, initialize};
pub use self::destroy::destroy_tenant_keys;
pub use self::inspect::{KeyReport, inspect};
pub use self::keyring::Keyring;
pub use self::keyset::{
    KeysetAuthority, KeysetChange, KeysetMismatch, KeysetState, StoredKeyset, VAULT,
};
pub use self::rotation::{
    KeyVersion, NewKek, NewVersion, ResealedPage, Rewrapped, SEALED_IDENTITY, ScannedPage,
    Transition, change_state, count_change, raise_digest_fence,
};
pub use self::security_code_kek::SecurityCodeKek;
pub use self::signing_keys::SigningKey;
pub(crate) use self::store::STATEMENTS;
pub use self::store::find_proof;
pub use self::tenant_keys::{DigestKey, OtherFingerprint, Record, TenantKeys};

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the root key cannot be used: {0}")]
    RootKey(String),
    /// The key provider does not unwrap keys at present.
    #[error(transparent)]
    Provider(Failure),
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
    /// SQL changed the keys: none of them is used.
    #[error(
        "the keys of {0} were inserted, restored or changed outside the vault; `cloakroom doctor` names them"
    )]
    AlteredKeyset(String),
    #[error("the vault has no {0} yet")]
    Missing(&'static str),
    /// A sealed value failed to open: altered, moved, or sealed under another key.
    #[error("an encrypted value failed its integrity check")]
    Integrity,
    #[error("a value could not be encrypted")]
    Seal,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// A root key that cannot be loaded.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::from_failure(failure, "root")
    }
}

impl Error {
    fn from_failure(failure: Failure, purpose: &str) -> Self {
        match failure {
            Failure::Integrity => Self::WrongKey(format!("the {purpose} key")),
            Failure::Configuration(what) => Self::RootKey(what),
            other => Self::Provider(other),
        }
    }

    /// Whether cached keys remain usable. A root key that was disabled on purpose is no outage; a credential file that
    /// cannot be read while its agent replaces it is one.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Provider(Failure::Unavailable(_) | Failure::Denied(_)) | Self::RootKey(_)
        )
    }
}

/// Unwraps a key of the given purpose that a root key wrapped.
async fn unwrap_below_root<P: Purpose>(
    roots: &RootKeys,
    wrapped: &[u8],
    context: &WrapContext<'_>,
) -> Result<Key<P>, Error>
where
    RootKek: Wraps<P>,
{
    let unwrapped = roots.unwrap(wrapped, context).await;
    unwrapped.map_err(|failure| Error::from_failure(failure, P::PURPOSE.name()))
}

/// State of a key's lifecycle. The numbers are stored in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Opens what nodes seal that already know it as active.
    PreActive = 1,
    Active = 2,
    DecryptOnly = 3,
    Destroyed = 4,
    /// Like decrypt-only, but statements of nodes that do not know its successor yet are accepted.
    Retiring = 5,
}

impl State {
    pub fn from_number(number: i16) -> Option<Self> {
        let all = [
            Self::PreActive,
            Self::Active,
            Self::DecryptOnly,
            Self::Destroyed,
            Self::Retiring,
        ];
        all.into_iter().find(|state| *state as i16 == number)
    }

    /// Whether keys in this state are loaded.
    fn is_usable(number: i16) -> bool {
        Self::from_number(number).is_some_and(|state| state != Self::Destroyed)
    }

    /// How many changes lead to this state, the insertion included.
    fn position(self) -> i32 {
        match self {
            Self::PreActive => 1,
            Self::Active => 2,
            Self::Retiring => 3,
            Self::DecryptOnly => 4,
            Self::Destroyed => 5,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::PreActive => "pre-active",
            Self::Active => "active",
            Self::DecryptOnly => "decrypt-only",
            Self::Destroyed => "destroyed",
            Self::Retiring => "retiring",
        }
    }
}
