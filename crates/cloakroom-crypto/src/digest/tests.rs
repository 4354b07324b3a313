//! Tests of what each digest depends on.

use super::*;
use crate::{Control, Request};

#[test]
fn named_uuids_depend_on_scope_and_name() {
    let id = named_uuid_bytes(&[1; 16], "order-1");

    assert_eq!(id, named_uuid_bytes(&[1; 16], "order-1"));
    assert_ne!(id, named_uuid_bytes(&[1; 16], "order-2"));
    assert_ne!(id, named_uuid_bytes(&[2; 16], "order-1"));
    assert_eq!((id[6] >> 4, id[8] >> 6), (8, 2));
}

#[test]
fn a_mac_depends_on_key_domain_and_parts() {
    let key = Key::<Control>::generate();
    let digest = mac(&key, "api_key", &[b"ab", b"c"]);

    assert!(verify_mac(&key, "api_key", &[b"ab", b"c"], &digest));
    assert!(!verify_mac(
        &Key::<Control>::generate(),
        "api_key",
        &[b"ab", b"c"],
        &digest
    ));
    assert!(!verify_mac(&key, "tenant", &[b"ab", b"c"], &digest));
    assert!(!verify_mac(&key, "api_key", &[b"a", b"bc"], &digest));
    assert!(!verify_mac(&key, "api_key", &[b"ab", b"c", b""], &digest));
    assert!(!verify_mac(&key, "api_keyab", &[b"c"], &digest));
    assert!(!verify_mac(&key, "api_key", &[b"ab", b"c"], &digest[..31]));
    assert!(!verify_mac(&key, "api_key", &[b"ab", b"c"], &[]));
}

#[test]
fn a_mac_with_a_flipped_bit_is_rejected() {
    let key = Key::<Request>::generate();
    let digest = mac(&key, "request", &[b"body"]);

    for bit in 0..256 {
        let mut flipped = digest;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify_mac(&key, "request", &[b"body"], &flipped), "{bit}");
    }
}

#[test]
fn a_fingerprint_depends_on_key_kind_and_value() {
    let key = Key::<Fingerprinting>::generate();
    let print = fingerprint(&key, "card_number", b"4242");

    assert_eq!(print, fingerprint(&key, "card_number", b"4242"));
    assert_ne!(print, fingerprint(&key, "card_number", b"4243"));
    assert_ne!(print, fingerprint(&key, "bank", b"4242"));
    assert_ne!(print, fingerprint(&key, "card_number4", b"242"));
    assert_ne!(print, fingerprint(&Key::generate(), "card_number", b"4242"));
}

#[test]
fn a_blind_term_depends_on_key_expression_and_value() {
    let key = Key::<Index>::generate();
    let term = blind_term(&key, "{{ data | last4 }}", b"4242");

    assert_eq!(term, blind_term(&key, "{{ data | last4 }}", b"4242"));
    assert_ne!(term, blind_term(&key, "{{ data | last4 }}", b"4243"));
    assert_ne!(term, blind_term(&key, "{{ data }}", b"4242"));
    assert_ne!(
        term,
        blind_term(&Key::generate(), "{{ data | last4 }}", b"4242")
    );
}
