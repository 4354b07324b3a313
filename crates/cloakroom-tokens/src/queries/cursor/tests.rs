//! Tests of cursor.

use cloakroom_crypto::{Data, Key, RecordContext, open, seal};
use proptest::prelude::*;

use super::super::filter::tests::{container, data, filters, metadata};
use super::*;

/// A tenant with its key, used as the keyring uses it.
struct Tenant {
    key: Key<Data>,
    uuid: [u8; 16],
}

impl Tenant {
    fn new(uuid: [u8; 16]) -> Self {
        let key = Key::generate();
        Self { key, uuid }
    }

    fn context<'a>(&self, record: &Record<'a>) -> RecordContext<'a> {
        RecordContext {
            environment: "test",
            tenant: self.uuid,
            kind: record.kind,
            record_id: record.id,
            column: record.column,
            row_version: record.row_version,
            policy: record.policy,
        }
    }

    fn write(&self, position: &Position, record: &Record<'_>) -> String {
        let seal = |record: &Record<'_>, plaintext: &[u8]| {
            let sealed = seal(&self.key, 1, &self.context(record), plaintext);
            sealed.map_err(|_| keys::Error::Seal)
        };
        write(position, record, seal).unwrap()
    }

    fn read(&self, text: &str, record: &Record<'_>) -> Option<Position> {
        let sealed = decode(text)?;
        let opened = open(&self.key, &self.context(record), &sealed);
        position(opened.map_err(|_| keys::Error::Integrity)).unwrap()
    }
}

fn somewhere() -> Position {
    Position {
        container: 7,
        created_at: "2030-01-01T00:00:00.123456Z".parse().unwrap(),
        token_id: Uuid::from_bytes([9; 16]),
    }
}

#[test]
fn cursors_are_short_and_url_safe_for_any_filter() {
    let tenant = Tenant::new([1; 16]);
    let filter = Filter {
        container: container(&format!("/{}/", "a".repeat(398))),
        condition: metadata(&"é".repeat(200), &"é".repeat(1_000)),
    };
    let record = record(Endpoint::List, &filter);

    let text = tenant.write(&somewhere(), &record);

    assert_eq!(text.len(), 110);
    assert!(
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    );
    assert_eq!(tenant.read(&text, &record), Some(somewhere()));
}

#[test]
fn cursors_are_rejected_for_other_endpoints_and_filters() {
    let tenant = Tenant::new([1; 16]);
    let filter = |container, condition| Filter {
        container,
        condition,
    };
    let own = filter(container("/a/"), metadata("k", "v"));
    let text = tenant.write(&somewhere(), &record(Endpoint::List, &own));
    let read = |endpoint, filter: &Filter| tenant.read(&text, &record(endpoint, filter));

    assert!(read(Endpoint::List, &own).is_some());
    assert_eq!(read(Endpoint::Search, &own), None);
    let others = [
        filter(None, None),
        filter(None, metadata("k", "v")),
        filter(container("/a/"), None),
        filter(container("/b/"), metadata("k", "v")),
        filter(container("/a/"), metadata("K", "v")),
        filter(container("/a/"), metadata("k", "V")),
        filter(container("/a/"), metadata("kv", "")),
        filter(container("/a/"), data("v")),
    ];
    for other in others {
        assert_eq!(read(Endpoint::List, &other), None, "{other:?}");
    }
}

#[test]
fn cursors_are_rejected_for_other_tenants() {
    let record = record(Endpoint::Search, &Filter::default());
    let tenant = Tenant::new([1; 16]);
    let text = tenant.write(&somewhere(), &record);

    assert_eq!(Tenant::new([1; 16]).read(&text, &record), None);
    let other = Tenant {
        key: tenant.key,
        uuid: [2; 16],
    };
    assert_eq!(other.read(&text, &record), None);
}

#[test]
fn modified_cursors_are_rejected() {
    let tenant = Tenant::new([1; 16]);
    let record = record(Endpoint::List, &Filter::default());
    let text = tenant.write(&somewhere(), &record);

    for at in 0..text.len() {
        for other in (0..128_u8).filter(|other| *other != text.as_bytes()[at]) {
            let mut changed = text.clone().into_bytes();
            changed[at] = other;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(tenant.read(&changed, &record), None, "{at}");
        }
        assert_eq!(tenant.read(&text[..at], &record), None, "{at}");
    }
    for extra in ["A", "=", "==", "AAAA", "\n"] {
        assert_eq!(tenant.read(&format!("{text}{extra}"), &record), None);
    }
}

#[test]
fn only_client_errors_give_no_position() {
    assert_eq!(position(Err(keys::Error::Integrity)).unwrap(), None);
    assert!(
        position(Err(keys::Error::Provider(keys::Failure::Unavailable(
            "down"
        ))))
        .is_err()
    );
    for length in [0, 27, 29] {
        let opened = Ok(Sensitive::new(vec![0; length]));
        assert_eq!(position(opened).unwrap(), None, "{length}");
    }
    let no_time = Ok(Sensitive::new(vec![0x7f; 28]));
    assert_eq!(position(no_time).unwrap(), None);
}

proptest! {
    #[test]
    fn positions_round_trip(
        filter in filters(),
        container in any::<i32>(),
        micros in Timestamp::MIN.as_microsecond()..Timestamp::MAX.as_microsecond(),
        token_id in any::<[u8; 16]>(),
    ) {
        let position = Position {
            container,
            created_at: Timestamp::from_microsecond(micros).unwrap(),
            token_id: Uuid::from_bytes(token_id),
        };
        let tenant = Tenant::new([1; 16]);
        let record = record(Endpoint::Search, &filter);

        let text = tenant.write(&position, &record);

        prop_assert_eq!(tenant.read(&text, &record), Some(position));
    }

    #[test]
    fn arbitrary_text_is_not_a_cursor(text in prop_oneof![any::<String>(), "[A-Za-z0-9_-]{0,200}"]) {
        let record = record(Endpoint::List, &Filter::default());
        prop_assert_eq!(Tenant::new([1; 16]).read(&text, &record), None);
    }
}
