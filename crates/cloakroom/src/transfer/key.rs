//! X25519 keys in PEM files, as `openssl genpkey -algorithm X25519` writes them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::keys::Failure;
use cloakroom_crypto::{ClientKey, PUBLIC_KEY_BYTES, Sensitive, sha256};
use cloakroom_custody::read_secret_file;

/// DER before the 32 bytes of a public key (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00,
];
/// DER before the 32 bytes of a private key (RFC 8410).
const PRIVATE_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20,
];

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the file must contain an X25519 {0} key as PEM; `openssl genpkey -algorithm X25519` creates one"
    )]
    Format(&'static str),
    #[error(transparent)]
    File(#[from] Failure),
}

/// The key that an export is encrypted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub [u8; PUBLIC_KEY_BYTES]);

impl PublicKey {
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        let der = decode(pem, "PUBLIC KEY").ok_or(KeyError::Format("public"))?;
        let raw = der.strip_prefix(&PUBLIC_PREFIX[..]);
        let raw = raw.and_then(|raw| raw.try_into().ok());
        Ok(Self(raw.ok_or(KeyError::Format("public"))?))
    }

    /// SHA-256 of the raw key, by which operators compare it with the receiver's.
    pub fn fingerprint(&self) -> String {
        hex::encode(sha256(&self.0))
    }
}

/// The key that decrypts an import.
pub struct PrivateKey(ClientKey);

impl PrivateKey {
    /// Reads a file that only its owner can read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let pem = read_secret_file(path)?;
        let der = decode(pem.expose(), "PRIVATE KEY").ok_or(KeyError::Format("private"))?;
        let der = Sensitive::new(der);
        let raw = der.expose().strip_prefix(&PRIVATE_PREFIX[..]);
        let raw = Sensitive::new(raw.ok_or(KeyError::Format("private"))?.to_vec());
        let key = ClientKey::from_sealed(&raw).map_err(|_| KeyError::Format("private"))?;
        Ok(Self(key))
    }

    pub(super) fn key(&self) -> &ClientKey {
        &self.0
    }
}

/// The bytes of a PEM block with this label.
fn decode(pem: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// From RFC 7748, section 6.1, as `openssl` encodes it.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VuBCIEIHcHbQpzGKV9PBbBclGyZkXfTC+H68CZKrF3+6UduSwq\n\
        -----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VuAyEAhSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn keys_are_read_as_openssl_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        std::fs::write(&path, PRIVATE).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();

        let private = PrivateKey::read(&path).ok().unwrap();
        let public = PublicKey::parse(PUBLIC).unwrap();

        assert_eq!(private.key().public_key().unwrap(), public.0);
        assert!(PublicKey::parse(PRIVATE).is_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(PrivateKey::read(&path), Err(KeyError::File(_))));
    }
}
