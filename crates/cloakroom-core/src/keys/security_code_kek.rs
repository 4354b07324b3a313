//! The key that wraps security-code keys, so that nodes exchange them without calling the key provider.

use cloakroom_crypto::{Key, SecurityCode, SecurityCodeWrap, WrapContext};

use super::Error;

/// Unwrapped once, when the node starts.
pub struct SecurityCodeKek(Key<SecurityCodeWrap>);

impl SecurityCodeKek {
    pub(super) fn new(key: Key<SecurityCodeWrap>) -> Self {
        Self(key)
    }

    pub fn wrap(
        &self,
        key: &Key<SecurityCode>,
        context: &WrapContext<'_>,
    ) -> Result<Vec<u8>, Error> {
        cloakroom_crypto::wrap(&self.0, key, context).map_err(|_| Error::Seal)
    }

    pub fn unwrap(
        &self,
        wrapped: &[u8],
        context: &WrapContext<'_>,
    ) -> Result<Key<SecurityCode>, Error> {
        cloakroom_crypto::unwrap(&self.0, context, wrapped)
            .map_err(|_| Error::WrongKey("a security-code key".to_owned()))
    }
}
