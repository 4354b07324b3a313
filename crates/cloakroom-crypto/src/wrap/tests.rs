//! Tests of wrapped keys, valid and modified.

use super::*;
use crate::{Data, Reply, RootKek, TenantKek};

const CONTEXT: WrapContext<'static> = WrapContext {
    environment: "test",
    tenant: Some([1; 16]),
    version: 3,
};

#[test]
fn a_wrapped_key_is_bound_to_its_row() {
    let (kek, key) = (Key::<TenantKek>::generate(), Key::<Data>::generate());
    let wrapped = wrap(&kek, &key, &CONTEXT).unwrap();

    let unwrapped: Key<Data> = unwrap(&kek, &CONTEXT, &wrapped).unwrap();
    assert!(unwrapped.secret() == key.secret());
    let other_contexts = [
        WrapContext {
            environment: "prod",
            ..CONTEXT
        },
        WrapContext {
            tenant: Some([2; 16]),
            ..CONTEXT
        },
        WrapContext {
            tenant: None,
            ..CONTEXT
        },
        WrapContext {
            version: 4,
            ..CONTEXT
        },
    ];
    for context in other_contexts {
        let result = unwrap::<_, Data>(&kek, &context, &wrapped);
        assert_eq!(result.err(), Some(Error::Integrity), "{context:?}");
    }
    let other_purpose = unwrap::<_, Reply>(&kek, &CONTEXT, &wrapped);
    assert_eq!(other_purpose.err(), Some(Error::Integrity));
    let other_kek = unwrap::<_, Data>(&Key::<TenantKek>::generate(), &CONTEXT, &wrapped);
    assert_eq!(other_kek.err(), Some(Error::Integrity));
}

#[test]
fn a_modified_wrapped_key_is_rejected() {
    let (kek, key) = (Key::<RootKek>::generate(), Key::<TenantKek>::generate());
    let wrapped = wrap(&kek, &key, &CONTEXT).unwrap();
    let is_rejected = |bytes: &[u8]| {
        unwrap::<_, TenantKek>(&kek, &CONTEXT, bytes).err() == Some(Error::Integrity)
    };

    assert_eq!(wrapped.len(), 86);
    for bit in 0..wrapped.len() * 8 {
        let mut flipped = wrapped.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(is_rejected(&flipped), "{bit}");
    }
    for length in 0..wrapped.len() {
        assert!(is_rejected(&wrapped[..length]), "{length}");
    }
    assert!(is_rejected(&[&wrapped[..], &[0]].concat()));
}

#[test]
fn a_key_that_does_not_match_its_check_value_is_rejected() {
    let (kek, key) = (Key::<TenantKek>::generate(), Key::<Data>::generate());
    let wrapped_as = |check_value: CheckValue| {
        let wrapping_key = primitives::derive(kek.secret(), &[0; 16], b"wrap.v1");
        let aad = CONTEXT.aad("data", check_value).unwrap();
        let mut sealed = key.secret().to_vec();
        let message_key = MessageKey::new(&wrapping_key, [0; 12]).unwrap();
        let tag = message_key.seal(&aad, &mut sealed).unwrap();
        let head = [&[1, 1], &check_value.as_bytes()[..], &[0; 28]].concat();
        [&head, &sealed, tag.as_ref()].concat()
    };

    let matching = unwrap::<_, Data>(&kek, &CONTEXT, &wrapped_as(key.check_value()));
    let mismatched = unwrap::<_, Data>(&kek, &CONTEXT, &wrapped_as(CheckValue::from([0; 8])));

    assert!(matching.is_ok());
    assert_eq!(mismatched.err(), Some(Error::Integrity));
}
