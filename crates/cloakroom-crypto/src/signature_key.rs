//! RSA key pairs that sign what other parties verify: RSASSA-PSS with SHA-256 and a salt of 32 bytes.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_SHA256, RsaKeyPair};

use crate::{Error, Sensitive};

/// A key pair. It cannot be printed, cloned or serialized; the private key is exported only for sealing.
///
/// ```compile_fail,E0277
/// let key = cloakroom_crypto::SignatureKey::generate().unwrap();
/// let _ = format!("{key:?}");
/// ```
pub struct SignatureKey(Box<RsaKeyPair>);

impl SignatureKey {
    /// Generates a key pair of 2048 bits. Takes a noticeable fraction of a second.
    pub fn generate() -> Result<Self, Error> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| Error::Provider)?;
        Ok(Self(Box::new(pair)))
    }

    /// Imports the bytes that [`Self::expose_for_sealing`] exported.
    pub fn from_sealed(pkcs8: &Sensitive<Vec<u8>>) -> Result<Self, Error> {
        let pair = RsaKeyPair::from_pkcs8(pkcs8.expose()).map_err(|_| Error::Integrity)?;
        Ok(Self(Box::new(pair)))
    }

    /// The private key as PKCS#8, only for sealing it.
    pub fn expose_for_sealing(&self) -> Result<Sensitive<Vec<u8>>, Error> {
        let der: Pkcs8V1Der<'_> = self.0.as_der().map_err(|_| Error::Provider)?;
        Ok(Sensitive::new(der.as_ref().to_vec()))
    }

    /// The public key as DER (`SubjectPublicKeyInfo`).
    pub fn public_key(&self) -> Result<Vec<u8>, Error> {
        let der: PublicKeyX509Der<'_> =
            self.0.public_key().as_der().map_err(|_| Error::Provider)?;
        Ok(der.as_ref().to_vec())
    }

    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        let random = SystemRandom::new();
        self.0
            .sign(&RSA_PSS_SHA256, &random, message, &mut signature)
            .map_err(|_| Error::Provider)?;
        Ok(signature)
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_restored_key_signs_for_the_same_public_key() {
        let key = SignatureKey::generate().unwrap();
        let restored = SignatureKey::from_sealed(&key.expose_for_sealing().unwrap()).unwrap();
        let public = key.public_key().unwrap();
        assert_eq!(restored.public_key().unwrap(), public);

        let signature = restored.sign(b"message").unwrap();

        let verifier = UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, public);
        assert!(verifier.verify(b"message", &signature).is_ok());
        assert!(verifier.verify(b"massage", &signature).is_err());
    }

    #[test]
    fn bytes_that_are_no_key_are_rejected() {
        assert!(SignatureKey::from_sealed(&Sensitive::new(vec![1, 2, 3])).is_err());
    }
}
