//! Where a page ended, as text that a client can hand back but neither read nor make.
//!
//! A cursor is a sealed [`Position`], bound to tenant, endpoint and filter. Writing one takes
//! [`write()`]; reading one takes [`decode`], the keyring, and [`position`].

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_crypto::{PolicyDigest, Sensitive};
use jiff::Timestamp;
use uuid::Uuid;

use super::Filter;
use crate::keys::{self, Record};

/// Changes with the layout, so that cursors of another release are refused and not misread.
const FORMAT: u32 = 1;

/// The last token of a page: the next page starts behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// By number, because a path can be longer than a cursor may be. Numbers are never given up.
    pub container: i32,
    /// To the microsecond, as the database keeps it.
    pub created_at: Timestamp,
    pub token_id: Uuid,
}

/// Where a cursor came from: it does not continue anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    List,
    Search,
}

/// What the cursors of one list or search are bound to, besides the tenant.
pub fn record(endpoint: Endpoint, filter: &Filter) -> Record<'static> {
    let policy = PolicyDigest::new::<&str>("cursor", &[], None);
    Record {
        kind: "cursor",
        id: &[],
        column: match endpoint {
            Endpoint::List => "list",
            Endpoint::Search => "search",
        },
        row_version: FORMAT,
        policy: policy.with("filter", filter.canonical().expose()),
    }
}

/// Seals a position and writes it as URL-safe text of about a hundred characters.
pub fn write(
    position: &Position,
    record: &Record<'_>,
    seal: impl FnOnce(&Record<'_>, &[u8]) -> Result<Vec<u8>, keys::Error>,
) -> Result<String, keys::Error> {
    let sealed = seal(record, &position.to_bytes())?;
    Ok(URL_SAFE_NO_PAD.encode(sealed))
}

/// The sealed bytes in a text that may be a cursor.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// The position in what the keyring opened; `None` when it was no cursor for this record.
///
/// Other failures are ours and not the client's, so they stay failures.
pub fn position(
    opened: Result<Sensitive<Vec<u8>>, keys::Error>,
) -> Result<Option<Position>, keys::Error> {
    match opened {
        Ok(bytes) => Ok(Position::from_bytes(bytes.expose())),
        Err(keys::Error::Integrity) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Position {
    fn to_bytes(self) -> [u8; 28] {
        let mut bytes = [0; 28];
        bytes[..4].copy_from_slice(&self.container.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.created_at.as_microsecond().to_be_bytes());
        bytes[12..].copy_from_slice(self.token_id.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (container, rest) = bytes.split_first_chunk()?;
        let (micros, rest) = rest.split_first_chunk()?;
        Some(Self {
            container: i32::from_be_bytes(*container),
            created_at: Timestamp::from_microsecond(i64::from_be_bytes(*micros)).ok()?,
            token_id: Uuid::from_slice(rest).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::{Data, Key, RecordContext, open, seal};
    use proptest::prelude::*;

    use super::super::filter::tests::{container, data, filters, metadata};
    use super::*;

    /// The keys of one tenant, used as the keyring uses them.
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
    fn a_cursor_is_short_and_safe_in_urls_whatever_the_filter() {
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
    fn a_cursor_does_not_continue_anything_else() {
        let tenant = Tenant::new([1; 16]);
        let filter = |container, condition| Filter {
            container,
            condition,
        };
        let asked = filter(container("/a/"), metadata("k", "v"));
        let text = tenant.write(&somewhere(), &record(Endpoint::List, &asked));
        let read = |endpoint, filter: &Filter| tenant.read(&text, &record(endpoint, filter));

        assert!(read(Endpoint::List, &asked).is_some());
        assert_eq!(read(Endpoint::Search, &asked), None);
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
    fn a_cursor_is_unknown_to_other_tenants() {
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
    fn no_character_of_a_cursor_may_change() {
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
    fn only_the_clients_failures_are_no_position() {
        assert_eq!(position(Err(keys::Error::Integrity)).unwrap(), None);
        assert!(position(Err(keys::Error::ProviderUnavailable)).is_err());
        for length in [0, 27, 29] {
            let opened = Ok(Sensitive::new(vec![0; length]));
            assert_eq!(position(opened).unwrap(), None, "{length}");
        }
        let no_time = Ok(Sensitive::new(vec![0x7f; 28]));
        assert_eq!(position(no_time).unwrap(), None);
    }

    proptest! {
        #[test]
        fn every_position_comes_back(
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
        fn no_text_is_a_cursor_by_chance(text in prop_oneof![any::<String>(), "[A-Za-z0-9_-]{0,200}"]) {
            let record = record(Endpoint::List, &Filter::default());
            prop_assert_eq!(Tenant::new([1; 16]).read(&text, &record), None);
        }
    }
}
