//! The keys of one tenant.

use std::sync::Arc;

use cloakroom_crypto::{
    Data, Fingerprint, Fingerprinting, Index, Key, PolicyDigest, RecordContext, Reply, Request,
    SealsRecords, Sensitive, blind_term, fingerprint, mac, open, seal, sealed_key_version,
};
use cloakroom_platform::ids::TenantId;

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
    pub(super) fingerprinting: Key<Fingerprinting>,
    pub(super) index: Key<Index>,
    pub(super) request: Key<Request>,
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

    /// The version that seals data.
    pub fn data_version(&self) -> u32 {
        self.data.active
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
        fingerprint(&self.fingerprinting, kind, value.as_bytes())
    }

    /// Computes a blind index term: a keyed digest of the searched attribute (`domain`) and the value.
    pub fn term(&self, domain: &str, value: &[u8]) -> [u8; 16] {
        blind_term(&self.index, domain, value)
    }

    /// Authenticates a request with an idempotency key; `domain` separates its parts.
    pub(crate) fn request_mac(&self, domain: &str, parts: &[&[u8]]) -> [u8; 32] {
        mac(&self.request, domain, parts)
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
            fingerprinting: Key::generate(),
            index: Key::generate(),
            request: Key::generate(),
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
