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

/// The digest of all clear-text columns of a row, in one pass.
///
/// The table determines the order of the columns. Each is encoded with its length, and NULL differs from an empty
/// value, so that no two rows have the same encoding.
pub struct RowPolicy(Vec<u8>);

impl RowPolicy {
    /// `bytes` is the expected size of all columns; the encoding adds eight bytes to each.
    pub fn new(table: &str, bytes: usize) -> Self {
        let mut encoded = Vec::with_capacity(TYPICAL_ROW_BYTES + bytes);
        append(&mut encoded, b"policy.row.v1");
        append(&mut encoded, table.as_bytes());
        Self(encoded)
    }

    #[must_use]
    pub fn bytes(mut self, column: Option<&[u8]>) -> Self {
        match column {
            Some(bytes) => append(&mut self.0, bytes),
            None => self.0.extend_from_slice(&NULL),
        }
        self
    }

    #[must_use]
    pub fn text(self, column: Option<&str>) -> Self {
        self.bytes(column.map(str::as_bytes))
    }

    /// A number, or a time as microseconds since 1970.
    #[must_use]
    pub fn number(self, column: Option<i64>) -> Self {
        let bytes = column.map(i64::to_be_bytes);
        self.bytes(bytes.as_ref().map(|bytes| &bytes[..]))
    }

    /// An array: its length, then its elements.
    #[must_use]
    pub fn array<'a>(self, column: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        let length = i64::try_from(column.len()).unwrap_or(i64::MAX);
        let mut policy = self.number(Some(length));
        column.for_each(|element| append(&mut policy.0, element));
        policy
    }

    pub fn digest(self) -> PolicyDigest {
        PolicyDigest(primitives::sha256(&self.0))
    }
}

/// The length prefix of NULL, which no value can have.
const NULL: [u8; 8] = [0xff; 8];
/// The encoding of a row without long texts fits, so its buffer is never reallocated.
const TYPICAL_ROW_BYTES: usize = 512;

fn append(encoded: &mut Vec<u8>, field: &[u8]) {
    encoded.extend_from_slice(&(field.len() as u64).to_be_bytes());
    encoded.extend_from_slice(field);
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
    fn every_column_of_a_row_changes_its_digest() {
        let row = || RowPolicy::new("token", 0).text(Some("a")).bytes(None);
        let digest = row()
            .number(Some(5))
            .array([&b"x"[..], b"y"].into_iter())
            .digest();

        let expected = "67a1c55f90a56010390ffd6996d1b4b9518a297538790599379c3e0c699dd086";
        assert_eq!(hex::encode(digest.as_bytes()), expected);
        let others = [
            RowPolicy::new("intent", 0).text(Some("a")).bytes(None),
            RowPolicy::new("token", 0).text(Some("a")).bytes(Some(b"")),
            RowPolicy::new("token", 0).text(None).text(Some("a")),
            RowPolicy::new("token", 0).text(Some("b")).bytes(None),
        ];
        for (position, other) in others.into_iter().enumerate() {
            let other = other.number(Some(5)).array([&b"x"[..], b"y"].into_iter());
            assert_ne!(digest, other.digest(), "{position}");
        }
        let arrays: [&[&[u8]]; 4] = [&[], &[b"x"], &[b"xy"], &[b"y", b"x"]];
        for elements in arrays {
            let other = row().number(Some(5)).array(elements.iter().copied());
            assert_ne!(digest, other.digest(), "{elements:?}");
        }
        for number in [None, Some(0), Some(-5)] {
            let other = row().number(number).array([&b"x"[..], b"y"].into_iter());
            assert_ne!(digest, other.digest(), "{number:?}");
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
