//! Keys in the memory of this node, both its own and fetched ones, until they expire.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use cloakroom_core::keys::{self, SecurityCodeKek};
use cloakroom_crypto::{
    Key, PolicyDigest, RecordContext, SecurityCode, Sensitive, WrapContext, random_bytes,
};
use cloakroom_platform::clock::Uptime;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::lifetime::Lifetime;

const KEY_ID_BYTES: usize = 16;
/// The part of an id that is its end of life; the rest is random.
const END_BYTES: usize = 8;
/// Keys are short-lived and have a single version.
const VERSION: u32 = 1;
/// Fetched keys beyond this number are used, but not cached.
const FETCHED_MAX: usize = 10_000;

/// The id of a key: its end of life by the database's clock, in microseconds since 1970, and eight random bytes.
///
/// The id is authenticated with the wrapped key, so a key cannot be published again with another end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyId([u8; KEY_ID_BYTES]);

impl KeyId {
    fn random(ends_at: Timestamp) -> Self {
        let mut id = [0; KEY_ID_BYTES];
        id[..END_BYTES].copy_from_slice(&ends_at.as_microsecond().to_be_bytes());
        id[END_BYTES..].copy_from_slice(&random_bytes::<{ KEY_ID_BYTES - END_BYTES }>());
        Self(id)
    }

    /// The time until the key expires, given the database's time; zero if it has expired.
    pub(super) fn left(self, now: Timestamp) -> Duration {
        let mut end = [0; END_BYTES];
        end.copy_from_slice(&self.0[..END_BYTES]);
        let left = i64::from_be_bytes(end).saturating_sub(now.as_microsecond());
        Duration::from_micros(u64::try_from(left).unwrap_or_default())
    }

    pub(super) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8; KEY_ID_BYTES] {
        &self.0
    }

    /// The associated data of the wrapped key: it unwraps under its own id only.
    fn wrap_context(self, environment: &str) -> WrapContext<'_> {
        WrapContext {
            environment,
            tenant: Some(self.0),
            version: VERSION,
        }
    }
}

/// The record that a code belongs to; a sealed code opens for this record only.
#[derive(Clone, Copy)]
pub(super) struct CodeContext<'a> {
    pub(super) environment: &'a str,
    pub(super) tenant: TenantId,
    pub(super) token_id: &'a Uuid,
    /// When the code expires.
    pub(super) until: Timestamp,
}

impl CodeContext<'_> {
    fn record_context(&self) -> RecordContext<'_> {
        let until = self.until.as_microsecond();
        RecordContext {
            environment: self.environment,
            tenant: self.tenant.uuid.into_bytes(),
            kind: "token",
            record_id: self.token_id.as_bytes(),
            column: "cvc",
            row_version: 1,
            policy: PolicyDigest::new::<&str>("security_code", &[], Some(until)),
        }
    }
}

/// A key and its lifetime. Its bytes are zeroized when the last reference is dropped.
pub(super) struct LiveKey {
    pub(super) id: KeyId,
    pub(super) lifetime: Lifetime,
    is_own: bool,
    key: Key<SecurityCode>,
    wrapped: OnceCell<Vec<u8>>,
}

impl LiveKey {
    /// Generates a key that expires at `ends_at` by the database's clock.
    pub(super) fn generate(lifetime: Lifetime, ends_at: Timestamp) -> Self {
        Self {
            id: KeyId::random(ends_at),
            lifetime,
            is_own: true,
            key: Key::generate(),
            wrapped: OnceCell::new(),
        }
    }

    /// Unwraps a key that another node published under this id.
    pub(super) fn unwrap(
        id: KeyId,
        lifetime: Lifetime,
        wrapped: &[u8],
        kek: &SecurityCodeKek,
        environment: &str,
    ) -> Result<Self, keys::Error> {
        Ok(Self {
            id,
            lifetime,
            is_own: false,
            key: kek.unwrap(wrapped, &id.wrap_context(environment))?,
            wrapped: OnceCell::new(),
        })
    }

    /// The wrapped key, for other nodes; wrapped once.
    pub(super) async fn wrapped(
        &self,
        kek: &SecurityCodeKek,
        environment: &str,
    ) -> Result<&[u8], keys::Error> {
        let context = self.id.wrap_context(environment);
        let wrap = || async { kek.wrap(&self.key, &context) };
        self.wrapped.get_or_try_init(wrap).await.map(Vec::as_slice)
    }

    pub(super) fn seal(
        &self,
        context: &CodeContext<'_>,
        code: &str,
    ) -> Result<Vec<u8>, keys::Error> {
        cloakroom_crypto::seal(
            &self.key,
            VERSION,
            &context.record_context(),
            code.as_bytes(),
        )
        .map_err(|_| keys::Error::Seal)
    }

    pub(super) fn open(
        &self,
        context: &CodeContext<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<String>, keys::Error> {
        let opened = cloakroom_crypto::open(&self.key, &context.record_context(), sealed)
            .map_err(|_| keys::Error::Integrity)?;
        let text = std::str::from_utf8(opened.expose()).map_err(|_| keys::Error::Integrity)?;
        Ok(Sensitive::new(text.to_owned()))
    }
}

/// All unexpired keys of this node.
#[derive(Default)]
pub(super) struct LiveKeys {
    maps: RwLock<KeyMaps>,
}

#[derive(Default)]
struct KeyMaps {
    by_id: HashMap<KeyId, Arc<LiveKey>>,
    /// Sealing keys of the current epoch, by retention: a long retention must not extend a short one.
    sealing: HashMap<Duration, Arc<LiveKey>>,
}

impl LiveKeys {
    /// The key that currently seals codes of this retention, if its epoch is not over.
    pub(super) fn sealing(&self, retention: Duration, now: Uptime) -> Option<Arc<LiveKey>> {
        let maps = self.read();
        let key = maps.sealing.get(&retention)?;
        key.lifetime.may_seal(now).then(|| key.clone())
    }

    pub(super) fn start_sealing(&self, retention: Duration, key: Arc<LiveKey>) {
        let mut maps = self.write();
        maps.by_id.insert(key.id, key.clone());
        maps.sealing.insert(retention, key);
    }

    /// Finds an unexpired key. Expired keys are not found, even before they are evicted.
    pub(super) fn find(&self, id: KeyId, now: Uptime) -> Option<Arc<LiveKey>> {
        let maps = self.read();
        let key = maps.by_id.get(&id)?;
        (!key.lifetime.has_expired(now)).then(|| key.clone())
    }

    /// Caches a fetched key, unless the cache is full.
    pub(super) fn cache_fetched(&self, key: Arc<LiveKey>) {
        let mut maps = self.write();
        if maps.by_id.len() < FETCHED_MAX {
            maps.by_id.insert(key.id, key);
        }
    }

    /// Unexpired keys that this node created and must keep published.
    pub(super) fn own(&self, now: Uptime) -> Vec<Arc<LiveKey>> {
        let maps = self.read();
        let is_due = |key: &&Arc<LiveKey>| key.is_own && !key.lifetime.has_expired(now);
        maps.by_id.values().filter(is_due).cloned().collect()
    }

    /// Drops all expired keys.
    pub(super) fn drop_expired(&self, now: Uptime) {
        let mut maps = self.write();
        maps.sealing.retain(|_, key| key.lifetime.may_seal(now));
        maps.by_id.retain(|_, key| !key.lifetime.has_expired(now));
    }

    pub(super) fn count(&self) -> usize {
        self.read().by_id.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, KeyMaps> {
        self.maps.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KeyMaps> {
        self.maps.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
