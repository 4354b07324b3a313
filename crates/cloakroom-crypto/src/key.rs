//! `Key`: a 256-bit secret key, typed by its purpose.

use std::marker::PhantomData;
use std::sync::OnceLock;

use zeroize::Zeroizing;

use crate::primitives::HmacKey;
use crate::{Error, Purpose, RootKek, Sensitive, random};

pub const KEY_BYTES: usize = 32;

/// A secret key for one purpose.
///
/// The bytes are on the heap, so moving a key leaves no copy behind, and are zeroized on drop.
/// To share a key, share an `Arc` of it.
///
/// It cannot be printed, cloned or serialized, and neither can a type that contains one:
///
/// ```compile_fail,E0277
/// let key = cloakroom_crypto::Key::<cloakroom_crypto::Data>::generate();
/// let _ = format!("{key:?}");
/// ```
/// ```compile_fail,E0277
/// let key = cloakroom_crypto::Key::<cloakroom_crypto::Data>::generate();
/// let _ = format!("{key}");
/// ```
/// ```compile_fail,E0277
/// #[derive(Debug)]
/// struct Ring(cloakroom_crypto::Key<cloakroom_crypto::Data>);
/// ```
/// ```compile_fail,E0599
/// let key = cloakroom_crypto::Key::<cloakroom_crypto::Data>::generate();
/// let _ = key.clone();
/// ```
/// ```compile_fail,E0277
/// let key = cloakroom_crypto::Key::<cloakroom_crypto::Data>::generate();
/// let _ = serde_json::to_string(&key);
/// ```
///
/// Only a root key can be constructed from bytes, and exported:
///
/// ```
/// use cloakroom_crypto::{Key, RootKek, Sensitive};
/// Key::<RootKek>::from_bytes(&Sensitive::new(vec![7; 32]))?;
/// # Ok::<(), cloakroom_crypto::Error>(())
/// ```
/// ```compile_fail,E0599
/// use cloakroom_crypto::{Data, Key, Sensitive};
/// Key::<Data>::from_bytes(&Sensitive::new(vec![7; 32]))?;
/// # Ok::<(), cloakroom_crypto::Error>(())
/// ```
pub struct Key<P: Purpose> {
    bytes: Box<Zeroizing<[u8; KEY_BYTES]>>,
    /// Initialized by the first digest; zeroized like the bytes.
    hmac: OnceLock<Box<HmacKey>>,
    purpose: PhantomData<P>,
}

impl<P: Purpose> Key<P> {
    pub fn generate() -> Self {
        let mut key = Self::blank();
        random::fill(key.bytes.as_mut_slice());
        key
    }

    /// Key check value (KCV): identifies the key without revealing it. Equal keys of one purpose have equal values.
    pub fn check_value(&self) -> CheckValue {
        let fields = [b"cloakroom key check v1", P::PURPOSE.name().as_bytes()];
        let digest = self.digest(fields);
        let mut value = [0; CHECK_VALUE_BYTES];
        value.copy_from_slice(&digest[..CHECK_VALUE_BYTES]);
        CheckValue(value)
    }

    /// HMAC-SHA-256 over fields under this key.
    pub(crate) fn digest<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        let make = || Box::new(HmacKey::new(self.secret()));
        self.hmac.get_or_init(make).fields(fields)
    }

    pub(crate) fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Copies directly to the heap, so that no key bytes remain on the stack.
    pub(crate) fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() != KEY_BYTES {
            return Err(Error::KeyLength);
        }
        let mut key = Self::blank();
        key.bytes.copy_from_slice(bytes);
        Ok(key)
    }

    fn blank() -> Self {
        Self {
            bytes: Box::new(Zeroizing::new([0; KEY_BYTES])),
            hmac: OnceLock::new(),
            purpose: PhantomData,
        }
    }
}

impl Key<RootKek> {
    /// Imports a root key read by a provider. The caller still owns and drops `bytes`.
    pub fn from_bytes(bytes: &Sensitive<Vec<u8>>) -> Result<Self, Error> {
        Self::from_slice(bytes.expose())
    }

    /// Exports a root key, for the file of the provider `file`.
    pub fn to_bytes(&self) -> Sensitive<Vec<u8>> {
        Sensitive::new(self.secret().to_vec())
    }
}

pub(crate) const CHECK_VALUE_BYTES: usize = 8;

/// The first 8 bytes of a keyed digest: enough to detect a wrong key, useless for recovering it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckValue([u8; CHECK_VALUE_BYTES]);

impl CheckValue {
    pub fn as_bytes(&self) -> &[u8; CHECK_VALUE_BYTES] {
        &self.0
    }
}

impl From<[u8; CHECK_VALUE_BYTES]> for CheckValue {
    fn from(bytes: [u8; CHECK_VALUE_BYTES]) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, TenantKek};

    #[test]
    fn a_root_key_has_exactly_32_bytes() {
        for (length, accepted) in [
            (0, false),
            (16, false),
            (31, false),
            (32, true),
            (33, false),
        ] {
            let key = Key::from_bytes(&Sensitive::new(vec![1; length]));
            assert_eq!(key.is_ok(), accepted, "{length}");
        }
    }

    #[test]
    fn check_values_identify_key_and_purpose() {
        let value = |byte| Key::<Data>::from_slice(&[byte; 32]).unwrap().check_value();
        let same_bytes = Key::<TenantKek>::from_slice(&[1; 32]).unwrap();

        assert_eq!(value(1), value(1));
        assert_ne!(value(1), value(2));
        assert_ne!(value(1), same_bytes.check_value());
    }

    #[test]
    fn generated_keys_differ() {
        let (one, two) = (Key::<Data>::generate(), Key::<Data>::generate());
        assert!(one.secret() != two.secret());
    }
}
