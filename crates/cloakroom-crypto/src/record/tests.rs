//! Tests of envelopes, valid and damaged.

use super::*;
use crate::Data;

fn context() -> RecordContext<'static> {
    RecordContext {
        environment: "test",
        tenant: [1; 16],
        kind: "token",
        record_id: b"id",
        column: "data",
        row_version: 1,
        policy: PolicyDigest::new("card", &["/a/"], None),
    }
}

#[test]
fn only_canonical_padding_is_accepted() {
    let block = |bytes: &[u8], length| {
        let mut block = bytes.to_vec();
        block.resize(length, 0);
        block
    };
    let cases = [
        (block(&[0x80], 32), Some(0)),
        (block(&[1, 0x80], 32), Some(1)),
        (block(&[0x80, 0x80], 32), Some(1)),
        (block(&[], 32), None),
        (block(&[1], 32), None),
        (block(&[1, 0x80], 64), None),
        (block(&[0; 32], 32), None),
    ];
    for (padded, expected) in cases {
        assert_eq!(unpadded_length(&padded), expected, "{padded:?}");
    }
}

#[test]
fn the_envelope_contains_its_key_version() {
    let key = Key::<Data>::generate();
    let sealed = seal(&key, 0x0102_0304, &context(), b"x").unwrap();

    assert_eq!(sealed_key_version(&sealed), Ok(0x0102_0304));
    assert_eq!(sealed[..6], [1, 1, 1, 2, 3, 4]);
}

#[test]
fn truncated_and_extended_envelopes_are_rejected() {
    let key = Key::<Data>::generate();
    let sealed = seal(&key, 1, &context(), &[7; 70]).unwrap();

    for length in 0..sealed.len() {
        let result = open(&key, &context(), &sealed[..length]);
        assert_eq!(result.err(), Some(Error::Integrity), "{length}");
    }
    for extra in 1..=64 {
        let longer = [&sealed[..], &vec![0; extra]].concat();
        let result = open(&key, &context(), &longer);
        assert_eq!(result.err(), Some(Error::Integrity), "{extra}");
    }
    assert_eq!(sealed_key_version(&sealed[..33]), Err(Error::Integrity));
}

#[test]
fn unknown_formats_and_algorithms_are_rejected() {
    let key = Key::<Data>::generate();
    let sealed = seal(&key, 1, &context(), b"x").unwrap();

    for (position, value) in (0..2).flat_map(|p| [0, 2, 255].map(|v| (p, v))) {
        let mut other = sealed.clone();
        other[position] = value;
        assert_eq!(sealed_key_version(&other), Err(Error::Integrity));
        assert_eq!(open(&key, &context(), &other).err(), Some(Error::Integrity));
    }
}

#[test]
fn equal_plaintexts_have_different_ciphertexts() {
    let key = Key::<Data>::generate();
    let seal = || seal(&key, 1, &context(), b"same").unwrap();
    assert_ne!(seal()[6..], seal()[6..]);
}

#[test]
fn an_overlong_context_is_rejected() {
    let key = Key::<Data>::generate();
    let sealed = seal(&key, 1, &context(), b"x").unwrap();
    let record_id = vec![0; 65_536];
    let context = RecordContext {
        record_id: &record_id,
        ..context()
    };

    assert_eq!(seal(&key, 1, &context, b"x"), Err(Error::ContextTooLong));
    assert_eq!(open(&key, &context, &sealed).err(), Some(Error::Integrity));
}
