//! Ed25519 key pairs that sign the audit log, and the verification of their signatures.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::{AuditAuthority, Error, Key};

pub const LOG_PUBLIC_KEY_BYTES: usize = 32;
pub const LOG_SIGNATURE_BYTES: usize = 64;

/// The public half of a [`LogKey`].
pub type LogPublicKey = [u8; LOG_PUBLIC_KEY_BYTES];
pub type LogSignature = [u8; LOG_SIGNATURE_BYTES];

/// A key pair that signs the audit log. It cannot be printed, cloned or serialized.
///
/// ```compile_fail,E0277
/// let key = cloakroom_crypto::LogKey::generate().unwrap();
/// let _ = format!("{key:?}");
/// ```
pub struct LogKey {
    pair: Box<Ed25519KeyPair>,
    public_key: LogPublicKey,
}

impl LogKey {
    /// Generates the key pair of a node. It exists in memory only.
    pub fn generate() -> Result<Self, Error> {
        let pair = Ed25519KeyPair::generate().map_err(|_| Error::Provider)?;
        Self::new(pair)
    }

    /// The key pair of the vault's audit authority, whose seed is the wrapped key.
    pub fn of_authority(key: &Key<AuditAuthority>) -> Result<Self, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(key.secret());
        Self::new(pair.map_err(|_| Error::Provider)?)
    }

    fn new(pair: Ed25519KeyPair) -> Result<Self, Error> {
        let public_key = pair.public_key().as_ref().try_into();
        Ok(Self {
            public_key: public_key.map_err(|_| Error::Provider)?,
            pair: Box::new(pair),
        })
    }

    pub fn public_key(&self) -> &LogPublicKey {
        &self.public_key
    }

    pub fn sign(&self, message: &[u8]) -> LogSignature {
        let mut signature = [0; LOG_SIGNATURE_BYTES];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }
}

/// Whether `signature` is the signature of `message` under `key`.
pub fn verify_log_signature(key: &LogPublicKey, message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, key)
        .verify(message, signature)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_verify_under_their_key_and_message_only() {
        let (key, other) = (LogKey::generate().unwrap(), LogKey::generate().unwrap());
        let signature = key.sign(b"message");

        assert!(verify_log_signature(
            key.public_key(),
            b"message",
            &signature
        ));
        for (public_key, message, signature) in [
            (other.public_key(), &b"message"[..], &signature[..]),
            (key.public_key(), b"massage", &signature),
            (key.public_key(), b"message", &signature[..63]),
            (key.public_key(), b"message", b""),
        ] {
            assert!(!verify_log_signature(public_key, message, signature));
        }
    }

    /// RFC 8032, section 7.1, test 1.
    #[test]
    fn the_key_of_the_authority_is_its_seed() {
        let seed = hex::decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let key = Key::<AuditAuthority>::from_slice(&seed.unwrap()).unwrap();

        let key = LogKey::of_authority(&key).unwrap();

        let public_key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(hex::encode(key.public_key()), public_key);
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bac\
             c61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(hex::encode(key.sign(b"")), signature);
    }
}
