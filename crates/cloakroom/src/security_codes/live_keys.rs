//! The keys in the memory of this node, its own and those it fetched, each until its time has come.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use cloakroom_crypto::{
    Key, PolicyDigest, RecordContext, SecurityCode, Sensitive, WrapContext, random_bytes,
};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::life::Life;
use crate::clock::Uptime;
use crate::ids::TenantId;
use crate::keys::{self, RootKey};

const KEY_ID_BYTES: usize = 16;
/// Every key has one version, and its life is short.
const VERSION: u32 = 1;
/// Fetched keys beyond this are used, but not remembered.
const FETCHED_MAX: usize = 10_000;

/// The random name of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyId([u8; KEY_ID_BYTES]);

impl KeyId {
    pub(super) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8; KEY_ID_BYTES] {
        &self.0
    }

    /// Where the wrapped key belongs: it unwraps under its own id only.
    fn wrap_context(self, environment: &str) -> WrapContext<'_> {
        WrapContext {
            environment,
            tenant: Some(self.0),
            version: VERSION,
        }
    }
}

/// Whose code it is: sealed there, it opens nowhere else.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) environment: &'a str,
    pub(super) tenant: TenantId,
    pub(super) token_id: &'a Uuid,
}

impl Place<'_> {
    fn record(&self) -> RecordContext<'_> {
        RecordContext {
            environment: self.environment,
            tenant: self.tenant.uuid.into_bytes(),
            kind: "token",
            record_id: self.token_id.as_bytes(),
            column: "cvc",
            row_version: 1,
            policy: PolicyDigest::new::<&str>("security_code", &[], None),
        }
    }
}

/// A key and its life. Its bytes are wiped when the last holder lets go.
pub(super) struct LiveKey {
    pub(super) id: KeyId,
    pub(super) life: Life,
    is_own: bool,
    key: Key<SecurityCode>,
    wrapped: OnceCell<Vec<u8>>,
}

impl LiveKey {
    pub(super) fn generate(life: Life) -> Self {
        Self {
            id: KeyId(random_bytes()),
            life,
            is_own: true,
            key: Key::generate(),
            wrapped: OnceCell::new(),
        }
    }

    /// Unwraps a key that another node published under this id.
    pub(super) async fn unwrap(
        id: KeyId,
        life: Life,
        wrapped: &[u8],
        root: &RootKey,
        environment: &str,
    ) -> Result<Self, keys::Error> {
        Ok(Self {
            id,
            life,
            is_own: false,
            key: root.unwrap(wrapped, &id.wrap_context(environment)).await?,
            wrapped: OnceCell::new(),
        })
    }

    /// The key as other nodes may get it; wrapped once.
    pub(super) async fn wrapped(
        &self,
        root: &RootKey,
        environment: &str,
    ) -> Result<&[u8], keys::Error> {
        let context = self.id.wrap_context(environment);
        let wrap = || root.wrap(&self.key, &context);
        self.wrapped.get_or_try_init(wrap).await.map(Vec::as_slice)
    }

    pub(super) fn seal(&self, place: &Place<'_>, code: &str) -> Result<Vec<u8>, keys::Error> {
        cloakroom_crypto::seal(&self.key, VERSION, &place.record(), code.as_bytes())
            .map_err(|_| keys::Error::Seal)
    }

    pub(super) fn open(
        &self,
        place: &Place<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<String>, keys::Error> {
        let opened = cloakroom_crypto::open(&self.key, &place.record(), sealed)
            .map_err(|_| keys::Error::Integrity)?;
        let text = std::str::from_utf8(opened.expose()).map_err(|_| keys::Error::Integrity)?;
        Ok(Sensitive::new(text.to_owned()))
    }
}

/// All keys that live here.
#[derive(Default)]
pub(super) struct LiveKeys {
    held: RwLock<Held>,
}

#[derive(Default)]
struct Held {
    by_id: HashMap<KeyId, Arc<LiveKey>>,
    /// The key of the current epoch, by retention: a long one must not lengthen a short one.
    sealing: HashMap<Duration, Arc<LiveKey>>,
}

impl LiveKeys {
    /// The key that seals codes of this retention now, if its epoch is not over.
    pub(super) fn sealing(&self, retention: Duration, now: Uptime) -> Option<Arc<LiveKey>> {
        let held = self.read();
        let key = held.sealing.get(&retention)?;
        key.life.may_seal(now).then(|| key.clone())
    }

    pub(super) fn start_sealing(&self, retention: Duration, key: Arc<LiveKey>) {
        let mut held = self.write();
        held.by_id.insert(key.id, key.clone());
        held.sealing.insert(retention, key);
    }

    /// A key whose time has not come, even if nobody has removed it yet.
    pub(super) fn find(&self, id: KeyId, now: Uptime) -> Option<Arc<LiveKey>> {
        let held = self.read();
        let key = held.by_id.get(&id)?;
        (!key.life.has_ended(now)).then(|| key.clone())
    }

    /// Keeps a fetched key, while there is room.
    pub(super) fn remember(&self, key: Arc<LiveKey>) {
        let mut held = self.write();
        if held.by_id.len() < FETCHED_MAX {
            held.by_id.insert(key.id, key);
        }
    }

    /// The keys that this node made and has to keep published.
    pub(super) fn own(&self, now: Uptime) -> Vec<Arc<LiveKey>> {
        let held = self.read();
        let is_due = |key: &&Arc<LiveKey>| key.is_own && !key.life.has_ended(now);
        held.by_id.values().filter(is_due).cloned().collect()
    }

    /// Lets go of every key whose time has come.
    pub(super) fn forget_ended(&self, now: Uptime) {
        let mut held = self.write();
        held.sealing.retain(|_, key| key.life.may_seal(now));
        held.by_id.retain(|_, key| !key.life.has_ended(now));
    }

    pub(super) fn count(&self) -> usize {
        self.read().by_id.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    fn tenant(byte: u8) -> TenantId {
        TenantId {
            number: i32::from(byte),
            uuid: Uuid::from_bytes([byte; 16]),
        }
    }

    /// A node's keys under the default settings, on a clock that the test moves.
    struct Node {
        keys: LiveKeys,
        born: Uptime,
    }

    impl Node {
        fn new() -> Self {
            Self {
                keys: LiveKeys::default(),
                born: Uptime::default() + minutes(123_456),
            }
        }

        fn key_at(&self, age: Duration) -> Arc<LiveKey> {
            let config::SecurityCodes { retention, epoch } = config::SecurityCodes::default();
            let now = self.born + age;
            self.keys.sealing(retention, now).unwrap_or_else(|| {
                let key = Arc::new(LiveKey::generate(Life::of_new_key(now, epoch, retention)));
                self.keys.start_sealing(retention, key.clone());
                key
            })
        }
    }

    #[test]
    fn a_code_opens_until_its_retention_and_never_after_eleven_minutes_more() {
        let (token_id, retention) = (Uuid::from_bytes([7; 16]), minutes(60));
        let place = Place {
            environment: "test",
            tenant: tenant(1),
            token_id: &token_id,
        };
        // From the first to the last moment of an epoch, and into the next one.
        for sealed_at in [
            Duration::ZERO,
            minutes(5),
            minutes(10) - Duration::from_millis(1),
            minutes(10),
            minutes(13),
        ] {
            let node = Node::new();
            node.key_at(Duration::ZERO);
            let key = node.key_at(sealed_at);
            let sealed = key.seal(&place, "123").unwrap();
            let (id, trace) = (key.id, Arc::downgrade(&key));
            drop(key);
            // The rule of `find`: the row has not expired, and the key lives.
            let read = |age: Duration| {
                let now = node.born + sealed_at + age;
                node.keys.forget_ended(now);
                let key = node.keys.find(id, now).filter(|_| age < retention)?;
                Some(key.open(&place, &sealed).unwrap().into_inner())
            };

            assert_eq!(read(minutes(59)).as_deref(), Some("123"), "{sealed_at:?}");
            assert_eq!(read(minutes(61)), None, "{sealed_at:?}");
            read(minutes(71));
            assert!(trace.upgrade().is_none(), "{sealed_at:?}");
            assert_eq!(node.keys.count(), 0, "{sealed_at:?}");
        }
    }

    #[test]
    fn a_key_that_has_ended_is_not_found_even_before_it_is_forgotten() {
        let node = Node::new();
        let id = node.key_at(Duration::ZERO).id;

        let last = node
            .keys
            .find(id, node.born + (minutes(70) - Duration::from_nanos(1)));
        let ended = node.keys.find(id, node.born + minutes(70));

        assert!(last.is_some());
        assert!(ended.is_none());
        assert!(node.keys.own(node.born + minutes(70)).is_empty());
        assert_eq!(node.keys.count(), 1);
    }

    #[test]
    fn fetched_keys_are_remembered_up_to_a_number() {
        let node = Node::new();
        let life = Life::of_fetched_key(node.born, minutes(1));

        for _ in 0..FETCHED_MAX + 10 {
            node.keys.remember(Arc::new(LiveKey::generate(life)));
        }

        assert_eq!(node.keys.count(), FETCHED_MAX);
        node.key_at(Duration::ZERO);
        assert_eq!(node.keys.count(), FETCHED_MAX + 1);
    }

    #[test]
    fn one_key_seals_per_epoch_and_retention() {
        let node = Node::new();
        let first = node.key_at(Duration::ZERO).id;

        assert_eq!(node.key_at(minutes(9)).id, first);
        assert_ne!(node.key_at(minutes(10)).id, first);
        assert!(node.keys.sealing(minutes(5), node.born).is_none());
    }

    #[test]
    fn a_code_opens_in_its_own_place_only() {
        let key = Node::new().key_at(Duration::ZERO);
        let (one, two) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        let place = Place {
            environment: "test",
            tenant: tenant(1),
            token_id: &one,
        };
        let sealed = key.seal(&place, "1234").unwrap();

        assert_eq!(key.open(&place, &sealed).unwrap().expose(), "1234");
        let elsewhere = [
            Place {
                environment: "production",
                ..place
            },
            Place {
                tenant: tenant(2),
                ..place
            },
            Place {
                token_id: &two,
                ..place
            },
        ];
        for place in elsewhere {
            assert!(key.open(&place, &sealed).is_err());
        }
        let other_key = Node::new().key_at(Duration::ZERO);
        assert!(other_key.open(&place, &sealed).is_err());
    }

    #[test]
    fn the_length_of_a_code_is_not_to_be_seen() {
        let key = Node::new().key_at(Duration::ZERO);
        let token_id = Uuid::from_bytes([1; 16]);
        let place = Place {
            environment: "test",
            tenant: tenant(1),
            token_id: &token_id,
        };

        let lengths = ["123", "1234"].map(|code| key.seal(&place, code).unwrap().len());

        assert_eq!(lengths, [82, 82]);
    }
}
