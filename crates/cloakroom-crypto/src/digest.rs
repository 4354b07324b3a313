//! Keyed digests: row authentication, fingerprints and blind search terms.

use crate::{Authenticates, Fingerprinting, Index, Key, equal_in_constant_time, primitives};

/// Authenticates `parts` under `domain`, which names what is authenticated (`"api_key"`).
///
/// Parts are told apart by their lengths: moving a byte from one to the next changes the digest.
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

/// Whether `mac` authenticates `parts`, in constant time.
pub fn verify_mac<P: Authenticates>(
    key: &Key<P>,
    domain: &str,
    parts: &[&[u8]],
    expected: &[u8],
) -> bool {
    equal_in_constant_time(&mac(key, domain, parts), expected)
}

/// What two equal values of one tenant have in common.
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

const NOTHING: [u8; 32] = [0; 32];

/// Fingerprints a canonical value; equal values of different kinds share nothing.
pub fn fingerprint(key: &Key<Fingerprinting>, kind: &str, value: &[u8]) -> Fingerprint {
    let fields = [b"fp.v1", kind.as_bytes(), value];
    let print = Fingerprint(key.digest(fields));
    // The provider leaves the end of what it digests on the stack. Let it be the end of something else.
    std::hint::black_box(key.digest([&NOTHING[..]]));
    print
}

/// The search term of a canonical value under one index expression.
///
/// Every expression has a key of its own, so terms of two expressions cannot be compared.
pub fn blind_term(key: &Key<Index>, expression: &str, value: &[u8]) -> [u8; 16] {
    let salt = primitives::sha256_fields([expression.as_bytes()]);
    let expression_key = primitives::derive(key.secret(), &salt, b"index.v1");
    let digest = primitives::hmac(expression_key.as_slice(), value);
    let mut term = [0; 16];
    term.copy_from_slice(&digest[..16]);
    term
}

/// The bytes of the (version 8) UUID under which a thing with a name of its own is kept.
///
/// Not keyed: the name stands beside it in clear, and must keep its place when keys change.
pub fn named_uuid_bytes(scope: &[u8; 16], name: &str) -> [u8; 16] {
    let fields: [&[u8]; 3] = [b"name.v1", scope, name.as_bytes()];
    let digest = primitives::sha256_fields(fields);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// What equal contents have in common.
///
/// Not keyed: it names what its reader has in full, and equal contents need equal names on all nodes.
pub fn content_digest(content: &[u8]) -> [u8; 32] {
    primitives::sha256_fields([b"content.v1", content])
}

/// A hash that clients may ask for under a key of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHash {
    Sha1,
    Sha256,
    Sha512,
}

/// HMAC under a key that a client wrote into an expression; it protects nothing of the vault's.
pub fn client_hmac(hash: ClientHash, key: &[u8], message: &[u8]) -> Vec<u8> {
    primitives::hmac_of(hash, key, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Control, Reply};

    #[test]
    fn a_name_has_one_uuid_per_scope() {
        let id = named_uuid_bytes(&[1; 16], "order-1");

        assert_eq!(id, named_uuid_bytes(&[1; 16], "order-1"));
        assert_ne!(id, named_uuid_bytes(&[1; 16], "order-2"));
        assert_ne!(id, named_uuid_bytes(&[2; 16], "order-1"));
        assert_eq!((id[6] >> 4, id[8] >> 6), (8, 2));
    }

    #[test]
    fn a_mac_depends_on_key_domain_and_parts() {
        let key = Key::<Control>::generate();
        let digest = mac(&key, "api_key", &[b"ab", b"c"]);

        assert!(verify_mac(&key, "api_key", &[b"ab", b"c"], &digest));
        assert!(!verify_mac(
            &Key::<Control>::generate(),
            "api_key",
            &[b"ab", b"c"],
            &digest
        ));
        assert!(!verify_mac(&key, "tenant", &[b"ab", b"c"], &digest));
        assert!(!verify_mac(&key, "api_key", &[b"a", b"bc"], &digest));
        assert!(!verify_mac(&key, "api_key", &[b"ab", b"c", b""], &digest));
        assert!(!verify_mac(&key, "api_keyab", &[b"c"], &digest));
        assert!(!verify_mac(&key, "api_key", &[b"ab", b"c"], &digest[..31]));
        assert!(!verify_mac(&key, "api_key", &[b"ab", b"c"], &[]));
    }

    #[test]
    fn no_bit_of_a_mac_may_change() {
        let key = Key::<Reply>::generate();
        let digest = mac(&key, "request", &[b"body"]);

        for bit in 0..256 {
            let mut flipped = digest;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify_mac(&key, "request", &[b"body"], &flipped), "{bit}");
        }
    }

    #[test]
    fn a_fingerprint_depends_on_key_kind_and_value() {
        let key = Key::<Fingerprinting>::generate();
        let print = fingerprint(&key, "card_number", b"4242");

        assert_eq!(print, fingerprint(&key, "card_number", b"4242"));
        assert_ne!(print, fingerprint(&key, "card_number", b"4243"));
        assert_ne!(print, fingerprint(&key, "bank", b"4242"));
        assert_ne!(print, fingerprint(&key, "card_number4", b"242"));
        assert_ne!(print, fingerprint(&Key::generate(), "card_number", b"4242"));
    }

    #[test]
    fn a_blind_term_depends_on_key_expression_and_value() {
        let key = Key::<Index>::generate();
        let term = blind_term(&key, "{{ data | last4 }}", b"4242");

        assert_eq!(term, blind_term(&key, "{{ data | last4 }}", b"4242"));
        assert_ne!(term, blind_term(&key, "{{ data | last4 }}", b"4243"));
        assert_ne!(term, blind_term(&key, "{{ data }}", b"4242"));
        assert_ne!(
            term,
            blind_term(&Key::generate(), "{{ data | last4 }}", b"4242")
        );
    }
}
