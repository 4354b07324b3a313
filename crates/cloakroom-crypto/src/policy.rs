//! The policy digest: binds a record's clear-text policy attributes to its ciphertext.

use crate::primitives;

/// SHA-256 over a record's type, sorted containers and expiry.
///
/// A record whose attributes were edited in the database without re-encryption fails to decrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyDigest([u8; 32]);

impl PolicyDigest {
    /// The order of `containers` does not matter. For a record without containers:
    /// `PolicyDigest::new::<&str>("webhook_secret", &[], None)`.
    pub fn new<S: AsRef<str>>(
        kind: &str,
        containers: &[S],
        expires_at_micros: Option<i64>,
    ) -> Self {
        let mut sorted: Vec<&str> = containers.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        let expiry = expires_at_micros.map(i64::to_be_bytes);
        let expiry: &[u8] = expiry.as_ref().map_or(&[], |bytes| bytes);

        let head = [b"policy.v1", kind.as_bytes(), expiry];
        let containers = sorted.into_iter().map(str::as_bytes);
        Self(primitives::sha256_fields(
            head.into_iter().chain(containers),
        ))
    }

    /// Chains a further attribute into the digest.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        let fields: [&[u8]; 4] = [
            b"policy.with.v1",
            &self.0,
            name.as_bytes(),
            value.as_bytes(),
        ];
        Self(primitives::sha256_fields(fields))
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chained_attributes_change_the_digest() {
        let plain = PolicyDigest::new("card", &["/a/"], None);
        let masked = plain.with("mask", "x");

        assert_eq!(masked, plain.with("mask", "x"));
        for other in [
            plain,
            plain.with("mask", "y"),
            plain.with("mas", "kx"),
            masked.with("mask", "x"),
        ] {
            assert_ne!(masked, other);
        }
    }

    #[test]
    fn only_the_order_of_containers_is_ignored() {
        let digest = PolicyDigest::new("card", &["/a/", "/b/"], Some(5));

        assert_eq!(digest, PolicyDigest::new("card", &["/b/", "/a/"], Some(5)));
        let others = [
            PolicyDigest::new("bank", &["/a/", "/b/"], Some(5)),
            PolicyDigest::new("card", &["/a/"], Some(5)),
            PolicyDigest::new("card", &["/a/", "/c/"], Some(5)),
            PolicyDigest::new("card", &["/a//b/"], Some(5)),
            PolicyDigest::new("card", &["/a/", "/b/", ""], Some(5)),
            PolicyDigest::new("card", &["/a/", "/b/"], Some(6)),
            PolicyDigest::new("card", &["/a/", "/b/"], None),
            PolicyDigest::new("card", &["/a/", "/b/"], Some(0)),
            PolicyDigest::new("card/a/", &["/b/"], Some(5)),
        ];
        for (position, other) in others.iter().enumerate() {
            assert_ne!(digest, *other, "{position}");
        }
    }
}
