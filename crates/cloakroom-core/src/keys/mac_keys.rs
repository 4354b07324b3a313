//! MAC keys for rows that grant access, and for events.

use cloakroom_crypto::{Authenticates, Control, Key, mac, verify_mac};

/// All versions of a MAC key, newest first. Old versions only verify.
pub struct MacKeys<P: Authenticates> {
    versions: Vec<Key<P>>,
}

/// Authenticates the rows that grant access, and events.
pub type ControlKey = MacKeys<Control>;

impl<P: Authenticates> MacKeys<P> {
    /// `versions` starts with the active one.
    pub fn new(versions: Vec<Key<P>>) -> Self {
        Self { versions }
    }

    /// Computes the MAC of the parts with the active version.
    pub fn authenticate(&self, domain: &str, parts: &[&[u8]]) -> [u8; 32] {
        // The keyring never loads without a version.
        self.versions
            .first()
            .map_or([0; 32], |key| mac(key, domain, parts))
    }

    /// Whether `digest` is the MAC of the parts under any version.
    pub fn verifies(&self, domain: &str, parts: &[&[u8]], digest: &[u8]) -> bool {
        self.versions
            .iter()
            .any(|key| verify_mac(key, domain, parts, digest))
    }
}
