//! Properties of every key, context and plaintext.

use cloakroom_crypto::{
    Data, Error, Key, PolicyDigest, RecordContext, RootKek, TenantKek, WrapContext, open, seal,
    sealed_key_version, unwrap, wrap,
};
use proptest::prelude::*;

/// A `RecordContext` that owns its fields, so that one of them can be changed.
#[derive(Debug, Clone, PartialEq)]
struct OwnedContext {
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

impl OwnedContext {
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

    /// A copy with one field taken from `other`.
    fn with_field_of(&self, other: &Self, field: usize) -> Self {
        let mut changed = self.clone();
        let other = other.clone();
        match field {
            0 => changed.environment = other.environment,
            1 => changed.tenant = other.tenant,
            2 => changed.kind = other.kind,
            3 => changed.record_id = other.record_id,
            4 => changed.column = other.column,
            5 => changed.row_version = other.row_version,
            6 => changed.policy_kind = other.policy_kind,
            7 => changed.containers = other.containers,
            _ => changed.expires_at_micros = other.expires_at_micros,
        }
        changed.containers.sort();
        changed
    }
}

fn owned_context() -> impl Strategy<Value = OwnedContext> {
    let location = (
        ".{0,12}",
        any::<[u8; 16]>(),
        ".{0,12}",
        any::<Vec<u8>>(),
        ".{0,12}",
    );
    let version_and_policy = (
        any::<u32>(),
        ".{0,12}",
        prop::collection::vec(".{0,12}", 0..4),
        any::<Option<i64>>(),
    );
    (location, version_and_policy).prop_map(|(location, version_and_policy)| {
        let (environment, tenant, kind, record_id, column) = location;
        let (row_version, policy_kind, mut containers, expires_at_micros) = version_and_policy;
        containers.sort();
        OwnedContext {
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
    // Mostly zeros and 0x80, the bytes that padding consists of.
    let byte = prop_oneof![Just(0), Just(0x80), any::<u8>()];
    prop::collection::vec(byte, 0..200)
}

proptest! {
    #[test]
    fn sealed_values_decrypt(owner in owned_context(), version: u32, plaintext in plaintext()) {
        let key = Key::<Data>::generate();

        let sealed = seal(&key, version, &owner.context(), &plaintext).unwrap();
        let opened = open(&key, &owner.context(), &sealed).unwrap();

        prop_assert_eq!(opened.expose(), &plaintext);
        prop_assert_eq!(sealed_key_version(&sealed), Ok(version));
    }

    #[test]
    fn the_length_reveals_only_the_number_of_blocks(length in 0..5000_usize) {
        let owner = OwnedContext {
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

        let sealed = seal(&Key::<Data>::generate(), 1, &owner.context(), &vec![1; length]).unwrap();

        prop_assert_eq!((sealed.len() - 50) % 32, 0);
        prop_assert!((length + 1..=length + 32).contains(&(sealed.len() - 50)));
    }

    #[test]
    fn a_sealed_value_does_not_decrypt_in_another_context(
        here in owned_context(),
        there in owned_context(),
        field in 0..9_usize,
    ) {
        let key = Key::<Data>::generate();
        let elsewhere = here.with_field_of(&there, field);
        prop_assume!(here != elsewhere);

        let sealed = seal(&key, 1, &here.context(), b"plaintext").unwrap();
        let opened = open(&key, &elsewhere.context(), &sealed);

        prop_assert_eq!(opened.err(), Some(Error::Integrity));
    }

    #[test]
    fn another_key_is_rejected(owner in owned_context(), plaintext in plaintext()) {
        let sealed = seal(&Key::<Data>::generate(), 1, &owner.context(), &plaintext).unwrap();

        let opened = open(&Key::<Data>::generate(), &owner.context(), &sealed);

        prop_assert_eq!(opened.err(), Some(Error::Integrity));
    }

    #[test]
    fn arbitrary_bytes_are_rejected(owner in owned_context(), mut bytes: Vec<u8>, marked: bool) {
        if marked {
            bytes.splice(..bytes.len().min(2), [1, 1]);
        }
        let _ = sealed_key_version(&bytes);

        let opened = open(&Key::<Data>::generate(), &owner.context(), &bytes);
        let unwrapped = unwrap::<RootKek, TenantKek>(
            &Key::generate(),
            &WrapContext { environment: "test", tenant: None, version: 1 },
            &bytes,
        );

        prop_assert_eq!(opened.err(), Some(Error::Integrity));
        prop_assert_eq!(unwrapped.err(), Some(Error::Integrity));
    }

    #[test]
    fn a_wrapped_key_unwraps_only_in_its_context(
        here in owned_wrap_context(),
        there in owned_wrap_context(),
        field in 0..3_usize,
    ) {
        let (kek, key) = (Key::<RootKek>::generate(), Key::<TenantKek>::generate());
        let mut elsewhere = here.clone();
        match field {
            0 => elsewhere.environment = there.environment,
            1 => elsewhere.tenant = there.tenant,
            _ => elsewhere.version = there.version,
        }

        let wrapped = wrap(&kek, &key, &here.context()).unwrap();
        let unwrapped: Key<TenantKek> = unwrap(&kek, &here.context(), &wrapped).unwrap();
        let moved = unwrap::<RootKek, TenantKek>(&kek, &elsewhere.context(), &wrapped);

        prop_assert_eq!(unwrapped.check_value(), key.check_value());
        prop_assert_eq!(moved.is_ok(), here == elsewhere);
    }
}

/// A `WrapContext` that owns its fields.
#[derive(Debug, Clone, PartialEq)]
struct OwnedWrapContext {
    environment: String,
    tenant: Option<[u8; 16]>,
    version: u32,
}

impl OwnedWrapContext {
    fn context(&self) -> WrapContext<'_> {
        WrapContext {
            environment: &self.environment,
            tenant: self.tenant,
            version: self.version,
        }
    }
}

fn owned_wrap_context() -> impl Strategy<Value = OwnedWrapContext> {
    let fields = (".{0,12}", any::<Option<[u8; 16]>>(), any::<u32>());
    fields.prop_map(|(environment, tenant, version)| OwnedWrapContext {
        environment,
        tenant,
        version,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn ten_thousand_bit_flips_are_rejected(
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
