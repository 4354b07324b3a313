//! The control key: authenticates the rows that grant access, and events.

use std::sync::{Arc, PoisonError, RwLock};

use cloakroom_crypto::{Control, mac, verify_mac};

use super::load::SystemKey;

/// A MAC as stored: the version of the control key, then HMAC-SHA-256.
pub type StoredMac = [u8; 36];

const VERSION_BYTES: usize = 4;

type Versions = Arc<Vec<Arc<SystemKey<Control>>>>;

/// All usable versions of the control key, the active one first. The others only verify.
pub struct ControlKey(RwLock<Versions>);

/// What becomes of a stored MAC when the control key is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The active version made it.
    Current,
    /// A former version made it; this is the MAC by the active one.
    Renewed(StoredMac),
    /// It does not authenticate the row.
    Altered,
}

impl ControlKey {
    /// `versions` starts with the active one.
    pub(super) fn new(versions: Vec<Arc<SystemKey<Control>>>) -> Self {
        Self(RwLock::new(Arc::new(versions)))
    }

    pub(super) fn replace(&self, versions: Vec<Arc<SystemKey<Control>>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(versions);
    }

    pub(super) fn versions(&self) -> Versions {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The version that makes MACs. The keyring never loads without one.
    pub fn active_version(&self) -> u32 {
        self.versions().first().map_or(0, |active| active.version)
    }

    /// Computes the MAC of the parts with the active version.
    pub fn authenticate(&self, domain: &str, parts: &[&[u8]]) -> StoredMac {
        let versions = self.versions();
        versions
            .first()
            .map_or([0; 36], |active| stored_mac(active, domain, parts))
    }

    /// Computes the MAC of the parts with the version that `stored` names, if this process has it.
    pub fn authenticate_like(
        &self,
        stored: &[u8],
        domain: &str,
        parts: &[&[u8]],
    ) -> Option<StoredMac> {
        let (version, versions) = (version_of(stored), self.versions());
        let named = versions.iter().find(|key| Some(key.version) == version)?;
        Some(stored_mac(named, domain, parts))
    }

    /// Whether `stored` is the MAC of the parts under the version that it names.
    pub fn verifies(&self, domain: &str, parts: &[&[u8]], stored: &[u8]) -> bool {
        let versions = self.versions();
        let (version, expected) = split(stored);
        let named = versions.iter().find(|key| Some(key.version) == version);
        // Computed for unknown versions as well: a lookup must take as long whether or not its row exists.
        let is_mac = named
            .or(versions.first())
            .is_some_and(|version| verify_mac(&version.key, domain, parts, expected));
        is_mac && named.is_some()
    }

    /// Verifies a MAC, and computes it again if a former version made it.
    pub fn renew(&self, domain: &str, parts: &[&[u8]], stored: &[u8]) -> Renewal {
        if !self.verifies(domain, parts, stored) {
            return Renewal::Altered;
        }
        match version_of(stored) == Some(self.active_version()) {
            true => Renewal::Current,
            false => Renewal::Renewed(self.authenticate(domain, parts)),
        }
    }

    /// Whether a version made the MAC that is newer than all of this process.
    pub fn is_older_than(&self, stored: &[u8]) -> bool {
        let newest = self.versions().iter().map(|key| key.version).max();
        version_of(stored) > newest
    }

    /// Whether this process has the version that made the MAC.
    pub fn has_version_of(&self, stored: &[u8]) -> bool {
        let version = version_of(stored);
        let versions = self.versions();
        versions.iter().any(|key| Some(key.version) == version)
    }
}

fn stored_mac(key: &SystemKey<Control>, domain: &str, parts: &[&[u8]]) -> StoredMac {
    let mut stored = [0; 36];
    let (version, digest) = stored.split_at_mut(VERSION_BYTES);
    version.copy_from_slice(&key.version.to_be_bytes());
    digest.copy_from_slice(&mac(&key.key, domain, parts));
    stored
}

/// The version that a stored MAC names; `None` if it is too short.
pub(crate) fn version_of(stored: &[u8]) -> Option<u32> {
    split(stored).0
}

fn split(stored: &[u8]) -> (Option<u32>, &[u8]) {
    match stored.split_first_chunk::<VERSION_BYTES>() {
        Some((version, digest)) => (Some(u32::from_be_bytes(*version)), digest),
        None => (None, stored),
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::Key;

    use super::*;

    fn key(version: u32) -> Arc<SystemKey<Control>> {
        let key = Key::generate();
        Arc::new(SystemKey { version, key })
    }

    #[test]
    fn a_mac_verifies_under_the_version_that_it_names_only() {
        let (former, active) = (key(1), key(2));
        let before = ControlKey::new(vec![former.clone()]);
        let both = ControlKey::new(vec![active.clone(), former]);
        let after = ControlKey::new(vec![active]);
        let parts: [&[u8]; 1] = [b"row"];

        let old = before.authenticate("test", &parts);
        let new = both.authenticate("test", &parts);

        assert!(both.verifies("test", &parts, &old));
        assert!(both.verifies("test", &parts, &new));
        assert!(!after.verifies("test", &parts, &old));
        let mut renamed = old;
        renamed[3] = 2;
        for broken in [&renamed[..], &old[4..], &old[..35], &[]] {
            assert!(!both.verifies("test", &parts, broken), "{broken:?}");
        }
        assert!(!both.verifies("other", &parts, &new));
        assert_eq!(both.renew("test", &parts, &old), Renewal::Renewed(new));
        assert_eq!(both.renew("test", &parts, &new), Renewal::Current);
        assert_eq!(both.renew("test", &parts, &renamed), Renewal::Altered);
        assert!(before.is_older_than(&new) && !both.is_older_than(&new));
        assert!(!after.is_older_than(&old));
    }
}
