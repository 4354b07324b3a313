//! Keys for keyed digests: the active version writes, all usable ones are looked up.

use cloakroom_crypto::{Fingerprint, Fingerprinting, Key, Purpose, Request, fingerprint, mac};

use crate::keys::{Error, State};

/// Every usable version of a key for digests, the oldest first.
pub(in crate::keys) struct DigestKeys<P: Purpose> {
    pub versions: Vec<DigestKey<P>>,
    active: usize,
}

/// A usable version of a key for digests.
pub struct DigestKey<P: Purpose> {
    pub(in crate::keys) version: u32,
    pub(in crate::keys) state: State,
    pub(in crate::keys) key: Key<P>,
}

/// The fingerprint of a value under a version of the key that is not the active one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherFingerprint {
    pub fingerprint: Fingerprint,
    /// Whether a token with deduplication claims this one too: nodes that do not know the new version yet claim this
    /// one only, and nodes that know that this one is closed claim the new one only.
    pub is_claimed: bool,
    /// Authenticate that the active fingerprint and this one are of one value, in both directions.
    pub pair_macs: [Fingerprint; 2],
}

impl<P: Purpose> DigestKeys<P> {
    /// One of the versions must be active.
    pub(in crate::keys) fn new(mut versions: Vec<DigestKey<P>>) -> Result<Self, Error> {
        versions.sort_by_key(|key| key.version);
        let active = versions.iter().position(|key| key.state == State::Active);
        let missing = Error::Missing("active key of every purpose for this tenant");
        Ok(Self {
            active: active.ok_or(missing)?,
            versions,
        })
    }

    pub(in crate::keys) fn active(&self) -> &DigestKey<P> {
        &self.versions[self.active]
    }

    pub(in crate::keys) fn newest(&self) -> &DigestKey<P> {
        self.versions.last().unwrap_or(self.active())
    }

    /// All versions but the active one.
    pub(in crate::keys) fn others(&self) -> impl Iterator<Item = &DigestKey<P>> {
        let active = self.active;
        let versions = self.versions.iter().enumerate();
        versions.filter_map(move |(index, key)| (index != active).then_some(key))
    }
}

impl<P: Purpose> DigestKey<P> {
    pub(in crate::keys) fn is_retiring(&self) -> bool {
        self.state == State::Retiring
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state == State::Active
    }
}

impl DigestKey<Fingerprinting> {
    /// Computes the fingerprint of a value under this version.
    pub fn fingerprint(&self, kind: &str, value: &str) -> Fingerprint {
        fingerprint(&self.key, kind, value.as_bytes())
    }
}

impl DigestKey<Request> {
    /// Authenticates a request with an idempotency key; `domain` separates its parts.
    pub(crate) fn mac(&self, domain: &str, parts: &[&[u8]]) -> [u8; 32] {
        mac(&self.key, domain, parts)
    }
}

#[cfg(test)]
impl<P: Purpose> DigestKeys<P> {
    pub(in crate::keys) fn generate() -> Self {
        let key = DigestKey {
            version: 1,
            state: State::Active,
            key: Key::generate(),
        };
        Self {
            versions: vec![key],
            active: 0,
        }
    }
}
