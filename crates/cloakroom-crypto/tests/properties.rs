//! What must hold for every key, context and plaintext.

use cloakroom_crypto::{
    Data, Error, Key, PolicyDigest, RecordContext, RootKek, TenantKek, WrapContext, open, seal,
    sealed_key_version, unwrap, wrap,
};
use proptest::prelude::*;

/// A context that owns its parts, so that one of them can be changed.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    environment: String,
    tenant: [u8; 16],
    kind: String,
    record_id: Vec<u8>,
    column: String,
    row_version: u32,
    policy_kind: String,
    containers: Vec<String>,
    expires_at_micros: Option<i64>,
}

impl Place {
    fn context(&self) -> RecordContext<'_> {
        RecordContext {
            environment: &self.environment,
            tenant: self.tenant,
            kind: &self.kind,
            record_id: &self.record_id,
            column: &self.column,
            row_version: self.row_version,
            policy: PolicyDigest::new(&self.policy_kind, &self.containers, self.expires_at_micros),
        }
    }

    /// This place with one field taken from another.
    fn with_field_of(&self, other: &Self, field: usize) -> Self {
        let mut place = self.clone();
        let other = other.clone();
        match field {
            0 => place.environment = other.environment,
            1 => place.tenant = other.tenant,
            2 => place.kind = other.kind,
            3 => place.record_id = other.record_id,
            4 => place.column = other.column,
            5 => place.row_version = other.row_version,
            6 => place.policy_kind = other.policy_kind,
            7 => place.containers = other.containers,
            _ => place.expires_at_micros = other.expires_at_micros,
        }
        place.containers.sort();
        place
    }
}

fn place() -> impl Strategy<Value = Place> {
    let sealed = (
        ".{0,12}",
        any::<[u8; 16]>(),
        ".{0,12}",
        any::<Vec<u8>>(),
        ".{0,12}",
    );
    let decided = (
        any::<u32>(),
        ".{0,12}",
        prop::collection::vec(".{0,12}", 0..4),
        any::<Option<i64>>(),
    );
    (sealed, decided).prop_map(|(sealed, decided)| {
        let (environment, tenant, kind, record_id, column) = sealed;
        let (row_version, policy_kind, mut containers, expires_at_micros) = decided;
        containers.sort();
        Place {
            environment,
            tenant,
            kind,
            record_id,
            column,
            row_version,
            policy_kind,
            containers,
            expires_at_micros,
        }
    })
}

fn plaintext() -> impl Strategy<Value = Vec<u8>> {
    // Mostly zeros and 0x80, to lead the padding into temptation.
    let byte = prop_oneof![Just(0), Just(0x80), any::<u8>()];
    prop::collection::vec(byte, 0..200)
}

proptest! {
    #[test]
    fn what_is_sealed_opens(place in place(), version: u32, plaintext in plaintext()) {
        let key = Key::<Data>::generate();

        let sealed = seal(&key, version, &place.context(), &plaintext).unwrap();
        let opened = open(&key, &place.context(), &sealed).unwrap();

        prop_assert_eq!(opened.expose(), &plaintext);
        prop_assert_eq!(sealed_key_version(&sealed), Ok(version));
    }

    #[test]
    fn the_length_tells_only_the_block(length in 0..5000_usize) {
        let place = Place {
            environment: String::new(),
            tenant: [0; 16],
            kind: String::new(),
            record_id: vec![],
            column: String::new(),
            row_version: 0,
            policy_kind: String::new(),
            containers: vec![],
            expires_at_micros: None,
        };

        let sealed = seal(&Key::<Data>::generate(), 1, &place.context(), &vec![1; length]).unwrap();

        prop_assert_eq!((sealed.len() - 50) % 32, 0);
        prop_assert!((length + 1..=length + 32).contains(&(sealed.len() - 50)));
    }

    #[test]
    fn a_sealed_value_opens_nowhere_else(here in place(), there in place(), field in 0..9_usize) {
        let key = Key::<Data>::generate();
        let elsewhere = here.with_field_of(&there, field);
        prop_assume!(here != elsewhere);

        let sealed = seal(&key, 1, &here.context(), b"plaintext").unwrap();
        let opened = open(&key, &elsewhere.context(), &sealed);

        prop_assert_eq!(opened.err(), Some(Error::Integrity));
    }

    #[test]
    fn another_key_opens_nothing(place in place(), plaintext in plaintext()) {
        let sealed = seal(&Key::<Data>::generate(), 1, &place.context(), &plaintext).unwrap();

        let opened = open(&Key::<Data>::generate(), &place.context(), &sealed);

        prop_assert_eq!(opened.err(), Some(Error::Integrity));
    }

    #[test]
    fn arbitrary_bytes_open_nothing(place in place(), mut bytes: Vec<u8>, marked: bool) {
        if marked {
            bytes.splice(..bytes.len().min(2), [1, 1]);
        }
        let _ = sealed_key_version(&bytes);

        let opened = open(&Key::<Data>::generate(), &place.context(), &bytes);
        let unwrapped = unwrap::<RootKek, TenantKek>(
            &Key::generate(),
            &WrapContext { environment: "test", tenant: None, version: 1 },
            &bytes,
        );

        prop_assert_eq!(opened.err(), Some(Error::Integrity));
        prop_assert_eq!(unwrapped.err(), Some(Error::Integrity));
    }

    #[test]
    fn what_is_wrapped_unwraps_there_only(
        here in wrap_place(),
        there in wrap_place(),
        field in 0..3_usize,
    ) {
        let (kek, key) = (Key::<RootKek>::generate(), Key::<TenantKek>::generate());
        let mut elsewhere = here.clone();
        match field {
            0 => elsewhere.0 = there.0,
            1 => elsewhere.1 = there.1,
            _ => elsewhere.2 = there.2,
        }

        let wrapped = wrap(&kek, &key, &wrap_context(&here)).unwrap();
        let back: Key<TenantKek> = unwrap(&kek, &wrap_context(&here), &wrapped).unwrap();
        let moved = unwrap::<RootKek, TenantKek>(&kek, &wrap_context(&elsewhere), &wrapped);

        prop_assert_eq!(back.check_value(), key.check_value());
        prop_assert_eq!(moved.is_ok(), here == elsewhere);
    }
}

type WrapPlace = (String, Option<[u8; 16]>, u32);

fn wrap_place() -> impl Strategy<Value = WrapPlace> {
    (".{0,12}", any::<Option<[u8; 16]>>(), any::<u32>())
}

fn wrap_context((environment, tenant, version): &WrapPlace) -> WrapContext<'_> {
    WrapContext {
        environment,
        tenant: *tenant,
        version: *version,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn ten_thousand_bit_flips_are_refused(
        plaintext in plaintext(),
        version: u32,
        positions in prop::collection::vec(any::<prop::sample::Index>(), 100),
    ) {
        let key = Key::<Data>::generate();
        let context = RecordContext {
            environment: "test",
            tenant: [1; 16],
            kind: "token",
            record_id: b"id",
            column: "data",
            row_version: 1,
            policy: PolicyDigest::new::<&str>("card", &[], None),
        };
        let mut sealed = seal(&key, version, &context, &plaintext).unwrap();

        for position in positions {
            let bit = position.index(sealed.len() * 8);
            sealed[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(open(&key, &context, &sealed).err(), Some(Error::Integrity));
            sealed[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert!(open(&key, &context, &sealed).is_ok());
    }
}
