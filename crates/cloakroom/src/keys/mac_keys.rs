//! Keys that authenticate rows: of those who may do what, and of what was done.

use cloakroom_crypto::{Audit, Authenticates, Control, Key, mac, verify_mac};

/// All versions of a key that authenticates, newest first. Old ones only verify.
pub struct MacKeys<P: Authenticates> {
    versions: Vec<Key<P>>,
}

/// Authenticates the rows that say who may do what.
pub type ControlKey = MacKeys<Control>;

/// Authenticates the record of what was done.
pub type AuditKey = MacKeys<Audit>;

impl<P: Authenticates> MacKeys<P> {
    /// `versions` starts with the active one.
    pub(crate) fn new(versions: Vec<Key<P>>) -> Self {
        Self { versions }
    }

    /// A digest over the parts that only a holder of the key can make.
    pub fn authenticate(&self, domain: &str, parts: &[&[u8]]) -> [u8; 32] {
        // An empty ring is refused when the keyring is loaded.
        self.versions
            .first()
            .map_or([0; 32], |key| mac(key, domain, parts))
    }

    /// Whether one of the versions made this digest.
    pub fn verifies(&self, domain: &str, parts: &[&[u8]], digest: &[u8]) -> bool {
        self.versions
            .iter()
            .any(|key| verify_mac(key, domain, parts, digest))
    }

    /// The digest that each version makes, the active one's first.
    pub fn authenticate_all<'a>(
        &'a self,
        domain: &'a str,
        parts: &'a [&'a [u8]],
    ) -> impl Iterator<Item = [u8; 32]> + 'a {
        self.versions.iter().map(move |key| mac(key, domain, parts))
    }
}
