//! Keyed digests: row authentication, fingerprints and blind search terms.

use crate::{Authenticates, Fingerprinting, Index, Key, equal_in_constant_time, primitives};

/// HMAC-SHA-256 over `parts`, with `domain` as the domain separator (`"api_key"`).
///
/// Parts are length-prefixed: moving a byte from one part to the next changes the digest.
///
/// ```compile_fail,E0277
/// use cloakroom_crypto::{Data, Key, mac};
/// mac(&Key::<Data>::generate(), "api_key", &[]);
/// ```
pub fn mac<P: Authenticates>(key: &Key<P>, domain: &str, parts: &[&[u8]]) -> [u8; 32] {
    let head = [b"mac.v1", domain.as_bytes()];
    let fields = head.into_iter().chain(parts.iter().copied());
    key.digest(fields)
}

/// Verifies `expected` against the MAC of `parts` in constant time.
pub fn verify_mac<P: Authenticates>(
    key: &Key<P>,
    domain: &str,
    parts: &[&[u8]],
    expected: &[u8],
) -> bool {
    equal_in_constant_time(&mac(key, domain, parts), expected)
}

/// Keyed digest of a canonical value; equal values of one tenant have equal fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

const ZERO_BLOCK: [u8; 32] = [0; 32];

/// Fingerprints a canonical value. Equal values of different kinds have unrelated fingerprints.
pub fn fingerprint(key: &Key<Fingerprinting>, kind: &str, value: &[u8]) -> Fingerprint {
    let fields = [b"fp.v1", kind.as_bytes(), value];
    let print = Fingerprint(key.digest(fields));
    // The provider leaves the tail of the digested message on the stack. A second digest overwrites it.
    std::hint::black_box(key.digest([&ZERO_BLOCK[..]]));
    print
}

/// The blind index term of a canonical value under one index expression.
///
/// Each expression has its own derived key, so terms of two expressions cannot be compared.
pub fn blind_term(key: &Key<Index>, expression: &str, value: &[u8]) -> [u8; 16] {
    let salt = primitives::sha256_fields([expression.as_bytes()]);
    let expression_key = primitives::derive(key.secret(), &salt, b"index.v1");
    let digest = primitives::hmac(expression_key.as_slice(), value);
    let mut term = [0; 16];
    term.copy_from_slice(&digest[..16]);
    term
}

/// The bytes of the (version 8) UUID under which an entity with a client-chosen name is stored.
///
/// Not keyed: the name is stored in clear beside it, and the id must survive key rotation.
pub fn named_uuid_bytes(scope: &[u8; 16], name: &str) -> [u8; 16] {
    let fields: [&[u8]; 3] = [b"name.v1", scope, name.as_bytes()];
    let digest = primitives::sha256_fields(fields);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// The digest under which a secret is stored and looked up, with `domain` as the domain separator (`"api-key"`).
///
/// Not keyed: it is for secrets of at least 128 random bits only, which cannot be guessed from it, and it must survive the
/// rotation of every key. Parts are length-prefixed.
pub fn secret_digest(domain: &str, parts: &[&[u8]]) -> [u8; 32] {
    let head = [b"secret.v1", domain.as_bytes()];
    primitives::sha256_fields(head.into_iter().chain(parts.iter().copied()))
}

/// SHA-256 of `content`, for content-addressed names.
///
/// Not keyed: its readers have the content, and all nodes must compute the same name.
pub fn content_digest(content: &[u8]) -> [u8; 32] {
    primitives::sha256_fields([b"content.v1", content])
}

/// Hash function that an expression may select for an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHash {
    Sha1,
    Sha256,
    Sha512,
}

/// HMAC under a key from a client's expression. It protects no vault data.
pub fn client_hmac(hash: ClientHash, key: &[u8], message: &[u8]) -> Vec<u8> {
    primitives::client_hmac(hash, key, message)
}

#[cfg(test)]
mod tests;
