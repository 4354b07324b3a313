//! The control key: authenticates the rows that say who may do what.

use cloakroom_crypto::{Control, Key, mac, verify_mac};

/// All versions of the control key, newest first. Old ones only verify.
pub struct ControlKey {
    versions: Vec<Key<Control>>,
}

impl ControlKey {
    /// `versions` starts with the active one.
    pub(super) fn new(versions: Vec<Key<Control>>) -> Self {
        Self { versions }
    }

    /// A digest over the parts that only a holder of the control key can make.
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
}
