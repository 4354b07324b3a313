//! Tests of retention, expiry and the record that a code is bound to.

use cloakroom_platform::config;

use super::*;

/// Ends that these tests do not depend on.
const END: Timestamp = Timestamp::MAX;

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

fn tenant(byte: u8) -> TenantId {
    TenantId {
        number: i32::from(byte),
        uuid: Uuid::from_bytes([byte; 16]),
    }
}

/// A node's keys with the default settings, on a clock that the test controls.
struct Node {
    keys: LiveKeys,
    start: Uptime,
}

impl Node {
    fn new() -> Self {
        Self {
            keys: LiveKeys::default(),
            start: Uptime::default() + minutes(123_456),
        }
    }

    fn key_at(&self, age: Duration) -> Arc<LiveKey> {
        let config::SecurityCodes { retention, epoch } = config::SecurityCodes::default();
        let now = self.start + age;
        self.keys.sealing(retention, now).unwrap_or_else(|| {
            let lifetime = Lifetime::for_new_key(now, epoch, retention);
            let key = Arc::new(LiveKey::generate(lifetime, END));
            self.keys.start_sealing(retention, key.clone());
            key
        })
    }
}

#[test]
fn codes_open_until_their_retention_and_never_eleven_minutes_after() {
    let (token_id, retention) = (Uuid::from_bytes([7; 16]), minutes(60));
    let context = CodeContext {
        environment: "test",
        tenant: tenant(1),
        token_id: &token_id,
        until: END,
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
        let sealed = key.seal(&context, "123").unwrap();
        let (id, trace) = (key.id, Arc::downgrade(&key));
        drop(key);
        // The condition of `find`: the row has not expired, and the key is available.
        let read = |age: Duration| {
            let now = node.start + sealed_at + age;
            node.keys.drop_expired(now);
            let key = node.keys.find(id, now).filter(|_| age < retention)?;
            Some(key.open(&context, &sealed).unwrap().into_inner())
        };

        assert_eq!(read(minutes(59)).as_deref(), Some("123"), "{sealed_at:?}");
        assert_eq!(read(minutes(61)), None, "{sealed_at:?}");
        read(minutes(71));
        assert!(trace.upgrade().is_none(), "{sealed_at:?}");
        assert_eq!(node.keys.count(), 0, "{sealed_at:?}");
    }
}

#[test]
fn expired_keys_are_not_found_even_before_they_are_dropped() {
    let node = Node::new();
    let id = node.key_at(Duration::ZERO).id;

    let last = node
        .keys
        .find(id, node.start + (minutes(70) - Duration::from_nanos(1)));
    let expired = node.keys.find(id, node.start + minutes(70));

    assert!(last.is_some());
    assert!(expired.is_none());
    assert!(node.keys.own(node.start + minutes(70)).is_empty());
    assert_eq!(node.keys.count(), 1);
}

#[test]
fn the_number_of_cached_fetched_keys_is_limited() {
    let node = Node::new();
    let lifetime = Lifetime::for_fetched_key(node.start, minutes(1));

    for _ in 0..FETCHED_MAX + 10 {
        node.keys
            .cache_fetched(Arc::new(LiveKey::generate(lifetime, END)));
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
    assert!(node.keys.sealing(minutes(5), node.start).is_none());
}

#[test]
fn codes_open_for_their_own_record_only() {
    let key = Node::new().key_at(Duration::ZERO);
    let (one, two) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
    let context = CodeContext {
        environment: "test",
        tenant: tenant(1),
        token_id: &one,
        until: END,
    };
    let sealed = key.seal(&context, "1234").unwrap();

    assert_eq!(key.open(&context, &sealed).unwrap().expose(), "1234");
    let elsewhere = [
        CodeContext {
            environment: "production",
            ..context
        },
        CodeContext {
            tenant: tenant(2),
            ..context
        },
        CodeContext {
            token_id: &two,
            ..context
        },
        CodeContext {
            until: Timestamp::UNIX_EPOCH,
            ..context
        },
    ];
    for context in elsewhere {
        assert!(key.open(&context, &sealed).is_err());
    }
    let other_key = Node::new().key_at(Duration::ZERO);
    assert!(other_key.open(&context, &sealed).is_err());
}

#[test]
fn sealed_codes_have_the_same_length() {
    let key = Node::new().key_at(Duration::ZERO);
    let token_id = Uuid::from_bytes([1; 16]);
    let context = CodeContext {
        environment: "test",
        tenant: tenant(1),
        token_id: &token_id,
        until: END,
    };

    let lengths = ["123", "1234"].map(|code| key.seal(&context, code).unwrap().len());

    assert_eq!(lengths, [82, 82]);
}

#[test]
fn the_id_of_a_key_is_its_end() {
    let end = Timestamp::from_second(1_700_000_000).unwrap();
    let id = KeyId::random(end);

    assert_eq!(id.left(end - minutes(70)), minutes(70));
    assert_eq!(id.left(end), Duration::ZERO);
    assert_eq!(id.left(end + minutes(1)), Duration::ZERO);
    assert_ne!(id, KeyId::random(end));
}
