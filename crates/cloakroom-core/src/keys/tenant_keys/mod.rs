//! The keys of one tenant.

mod digest_keys;

use std::sync::Arc;

use cloakroom_crypto::{
    Data, Fingerprint, Fingerprinting, Index, Key, KeyPurpose, PolicyDigest, RecordContext, Reply,
    Request, SealsRecords, Sensitive, blind_term, open, seal, sealed_key_version,
};
use cloakroom_platform::ids::TenantId;

pub(super) use self::digest_keys::DigestKeys;
pub use self::digest_keys::{DigestKey, OtherFingerprint};
use super::Error;

/// The associated data of a sealed value, besides its tenant: moved to another record, it fails to open.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub kind: &'a str,
    pub id: &'a [u8],
    pub column: &'a str,
    pub row_version: u32,
    pub policy: PolicyDigest,
}

/// A tenant's keys: two for sealing, and three for keyed digests.
pub struct TenantKeys {
    pub(super) environment: Arc<str>,
    pub(super) tenant: TenantId,
    pub(super) data: SealingKeys<Data>,
    pub(super) reply: SealingKeys<Reply>,
    pub(super) fingerprinting: DigestKeys<Fingerprinting>,
    pub(super) index: DigestKeys<Index>,
    pub(super) request: DigestKeys<Request>,
    /// See [`TenantKeys::digest_epoch`].
    pub(super) digest_epoch: i32,
}

/// Every usable version of a key: the active one seals, all of them open.
pub(super) struct SealingKeys<P: SealsRecords> {
    pub active: u32,
    pub versions: Vec<(u32, Key<P>)>,
}

impl TenantKeys {
    pub fn seal(&self, record: &Record<'_>, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        self.data.seal(&self.context(record), plaintext)
    }

    /// Opens a value sealed under one of these keys. For stored rows use [`super::Keyring::open`], which also loads
    /// newer keys.
    pub fn open(&self, record: &Record<'_>, sealed: &[u8]) -> Result<Sensitive<Vec<u8>>, Error> {
        self.data.open(&self.context(record), sealed)
    }

    /// The active version of a key that seals or digests.
    pub fn active_version(&self, purpose: KeyPurpose) -> Option<u32> {
        match purpose {
            KeyPurpose::Data => Some(self.data.active),
            KeyPurpose::Reply => Some(self.reply.active),
            KeyPurpose::Fingerprint => Some(self.fingerprinting.active().version),
            KeyPurpose::Index => Some(self.index.active().version),
            KeyPurpose::Request => Some(self.request.active().version),
            _ => None,
        }
    }

    /// Increases with every change of the states of fingerprint and index keys. Statements that store fingerprints or
    /// terms carry it: they fail (`storage::Error::StaleKey`) if all nodes were to know a newer one.
    pub fn digest_epoch(&self) -> i32 {
        self.digest_epoch
    }

    /// Opens a value and seals it under the active version; `None` if it is sealed under that already.
    pub fn reseal(&self, record: &Record<'_>, sealed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.data.is_active(sealed) {
            return Ok(None);
        }
        let opened = self.open(record, sealed)?;
        self.seal(record, opened.expose()).map(Some)
    }

    /// Seals a response that is stored for an idempotency key.
    pub fn seal_response(&self, record: &Record<'_>, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        self.reply.seal(&self.context(record), plaintext)
    }

    pub(super) fn open_response(
        &self,
        record: &Record<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        self.reply.open(&self.context(record), sealed)
    }

    /// Computes the fingerprint of a value: equal for equal values of one kind within this tenant only.
    pub fn fingerprint(&self, kind: &str, value: &str) -> Fingerprint {
        self.fingerprinting.active().fingerprint(kind, value)
    }

    /// Computes the fingerprints of a value under all versions but the active one. Empty unless the key is being
    /// replaced.
    pub fn other_fingerprints(&self, kind: &str, value: &str) -> Vec<OtherFingerprint> {
        let others = self.fingerprinting.others();
        let other = |key: &DigestKey<Fingerprinting>| {
            let active = self.fingerprint(kind, value);
            let fingerprint = key.fingerprint(kind, value);
            OtherFingerprint {
                fingerprint,
                is_claimed: key.is_retiring(),
                pair_macs: [
                    self.fingerprint_pair_mac([&active, &fingerprint]),
                    self.fingerprint_pair_mac([&fingerprint, &active]),
                ],
            }
        };
        others.map(other).collect()
    }

    /// Whether the fingerprint key is being replaced: values have more than one fingerprint.
    pub fn has_other_fingerprints(&self) -> bool {
        self.fingerprinting.others().next().is_some()
    }

    /// The versions of the fingerprint key, the oldest first: counters that must survive its replacement use all of
    /// them, or the first one.
    pub fn fingerprint_versions(&self) -> impl Iterator<Item = &DigestKey<Fingerprinting>> {
        self.fingerprinting.versions.iter()
    }

    /// Authenticates that two fingerprints are of one value. Under the newest version, so that the MAC is the same
    /// during the whole replacement.
    pub fn fingerprint_pair_mac(&self, pair: [&Fingerprint; 2]) -> Fingerprint {
        let text = pair.map(|print| hex::encode(print.as_bytes())).concat();
        let newest = self.fingerprinting.newest();
        newest.fingerprint("fingerprint pair", &text)
    }

    /// Computes a blind index term: a keyed digest of the searched attribute (`domain`) and the value.
    pub fn term(&self, domain: &str, value: &[u8]) -> [u8; 16] {
        blind_term(&self.index.active().key, domain, value)
    }

    /// Computes the terms that tokens with the value can have: one for each version of the key.
    pub fn terms(&self, domain: &str, value: &[u8]) -> Vec<[u8; 16]> {
        let term = |key: &DigestKey<Index>| blind_term(&key.key, domain, value);
        self.index.versions.iter().map(term).collect()
    }

    /// The versions of the key that authenticates requests with idempotency keys, the oldest first.
    pub(crate) fn request_versions(&self) -> &[DigestKey<Request>] {
        &self.request.versions
    }

    fn context<'a>(&'a self, record: &Record<'a>) -> RecordContext<'a> {
        RecordContext {
            environment: &self.environment,
            tenant: self.tenant.uuid.into_bytes(),
            kind: record.kind,
            record_id: record.id,
            column: record.column,
            row_version: record.row_version,
            policy: record.policy,
        }
    }
}

#[cfg(test)]
impl TenantKeys {
    /// New keys, for tests of rules that need some.
    pub(crate) fn generate(tenant: TenantId) -> Self {
        Self {
            environment: "test".into(),
            tenant,
            data: SealingKeys::generate(),
            reply: SealingKeys::generate(),
            fingerprinting: DigestKeys::generate(),
            index: DigestKeys::generate(),
            request: DigestKeys::generate(),
            digest_epoch: 4,
        }
    }
}

#[cfg(test)]
impl<P: SealsRecords> SealingKeys<P> {
    fn generate() -> Self {
        Self {
            active: 1,
            versions: vec![(1, Key::generate())],
        }
    }
}

impl<P: SealsRecords> SealingKeys<P> {
    fn seal(&self, context: &RecordContext<'_>, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        let key = self.version(self.active).ok_or(Error::Seal)?;
        seal(key, self.active, context, plaintext).map_err(|_| Error::Seal)
    }

    fn open(
        &self,
        context: &RecordContext<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        let version = sealed_key_version(sealed).map_err(|_| Error::Integrity)?;
        let key = self.version(version).ok_or(Error::Integrity)?;
        open(key, context, sealed).map_err(|_| Error::Integrity)
    }

    /// Whether a value is sealed under the active version.
    pub(super) fn is_active(&self, sealed: &[u8]) -> bool {
        sealed_key_version(sealed).is_ok_and(|version| version == self.active)
    }

    /// Whether a value was sealed under a version that is not loaded (yet).
    pub(super) fn lacks_key_of(&self, sealed: &[u8]) -> bool {
        sealed_key_version(sealed).is_ok_and(|version| self.version(version).is_none())
    }

    fn version(&self, version: u32) -> Option<&Key<P>> {
        self.versions
            .iter()
            .find(|(number, _)| *number == version)
            .map(|(_, key)| key)
    }
}
