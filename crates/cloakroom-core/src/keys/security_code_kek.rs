//! The key that wraps security-code keys, so that nodes exchange them without calling the key provider.

use std::sync::{Arc, PoisonError, RwLock};

use cloakroom_crypto::{Key, SecurityCode, SecurityCodeWrap, WrapContext};

use super::Error;
use super::load::SystemKey;

const VERSION_BYTES: usize = 4;

type Versions = Arc<Vec<SystemKey<SecurityCodeWrap>>>;

/// All usable versions, the active one first. They are unwrapped when the node starts, and when the key is rotated.
pub struct SecurityCodeKek(RwLock<Versions>);

impl SecurityCodeKek {
    pub(super) fn new(versions: Vec<SystemKey<SecurityCodeWrap>>) -> Self {
        Self(RwLock::new(Arc::new(versions)))
    }

    pub(super) fn replace(&self, versions: Vec<SystemKey<SecurityCodeWrap>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(versions);
    }

    fn versions(&self) -> Versions {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Wraps a key with the active version, whose number precedes the wrapped bytes.
    pub fn wrap(
        &self,
        key: &Key<SecurityCode>,
        context: &WrapContext<'_>,
    ) -> Result<Vec<u8>, Error> {
        let versions = self.versions();
        let active = versions.first().ok_or(Error::Seal)?;
        let wrapped = cloakroom_crypto::wrap(&active.key, key, context);
        let mut bytes = active.version.to_be_bytes().to_vec();
        bytes.extend(wrapped.map_err(|_| Error::Seal)?);
        Ok(bytes)
    }

    /// Whether another version than those of this node wrapped the key.
    pub fn lacks_version_of(&self, wrapped: &[u8]) -> bool {
        let version = wrapped.first_chunk::<VERSION_BYTES>();
        let version = version.map(|bytes| u32::from_be_bytes(*bytes));
        let versions = self.versions();
        version.is_some_and(|version| versions.iter().all(|key| key.version != version))
    }

    pub fn unwrap(
        &self,
        wrapped: &[u8],
        context: &WrapContext<'_>,
    ) -> Result<Key<SecurityCode>, Error> {
        let broken = || Error::WrongKey("a security-code key".to_owned());
        let (version, wrapped) = wrapped
            .split_first_chunk::<VERSION_BYTES>()
            .ok_or_else(broken)?;
        let version = u32::from_be_bytes(*version);
        let versions = self.versions();
        let key = versions.iter().find(|key| key.version == version);
        let key = key.ok_or_else(broken)?;
        cloakroom_crypto::unwrap(&key.key, context, wrapped).map_err(|_| broken())
    }
}
