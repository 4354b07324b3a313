//! The keys of one tenant, and sealing under them.

use std::sync::Arc;

use cloakroom_crypto::{
    Data, Fingerprint, Fingerprinting, Index, Key, PolicyDigest, RecordContext, Reply,
    SealsRecords, Sensitive, blind_term, fingerprint, open, seal, sealed_key_version,
};

use super::Error;
use crate::ids::TenantId;

/// What a sealed value is bound to, besides its tenant: moved anywhere else, it does not open.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub kind: &'a str,
    pub id: &'a [u8],
    pub column: &'a str,
    pub row_version: u32,
    pub policy: PolicyDigest,
}

/// A tenant's keys: two that seal, and two that make keyed digests.
pub struct TenantKeys {
    pub(super) environment: Arc<str>,
    pub(super) tenant: TenantId,
    pub(super) data: SealingKeys<Data>,
    pub(super) reply: SealingKeys<Reply>,
    pub(super) fingerprinting: Key<Fingerprinting>,
    pub(super) index: Key<Index>,
}

/// Every usable version of a key: the active one seals, and each opens what it sealed.
pub(super) struct SealingKeys<P: SealsRecords> {
    pub active: u32,
    pub versions: Vec<(u32, Key<P>)>,
}

impl TenantKeys {
    pub fn seal(&self, record: &Record<'_>, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        self.data.seal(&self.context(record), plaintext)
    }

    /// Opens what one of these keys sealed. Rows go through [`super::Keyring::open`], which looks for
    /// newer keys as well.
    pub fn open(&self, record: &Record<'_>, sealed: &[u8]) -> Result<Sensitive<Vec<u8>>, Error> {
        self.data.open(&self.context(record), sealed)
    }

    /// Seals an answer that is kept for a day.
    pub fn seal_reply(&self, record: &Record<'_>, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        self.reply.seal(&self.context(record), plaintext)
    }

    pub(super) fn open_reply(
        &self,
        record: &Record<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        self.reply.open(&self.context(record), sealed)
    }

    /// What equal values of one kind have in common, in this tenant alone.
    pub fn fingerprint(&self, kind: &str, value: &str) -> Fingerprint {
        fingerprint(&self.fingerprinting, kind, value.as_bytes())
    }

    /// A search term: what is searched (`domain`) and the value, digested.
    pub fn term(&self, domain: &str, value: &[u8]) -> [u8; 16] {
        blind_term(&self.index, domain, value)
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

    /// Whether a value was sealed under a version that is not on this ring (yet).
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
