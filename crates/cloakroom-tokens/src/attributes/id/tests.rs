//! Tests of id.

use serde_json::json;

use super::*;

const TENANT: TenantId = TenantId {
    number: 1,
    uuid: Uuid::from_u128(7),
};

#[test]
fn ids_are_validated() {
    let long = "x".repeat(400);
    let too_long = "x".repeat(401);
    let cases = [
        ("abc", true),
        ("order 17: käse@example.com", true),
        (long.as_str(), true),
        ("9EA0B7C7-FB9C-4D6A-8F7B-123456789ABC", true),
        ("ab", false),
        (too_long.as_str(), false),
        (" abc", false),
        ("abc\u{a0}", false),
        ("a\tb", false),
        ("4242424242424242", false),
        ("6cd558d1-bc55-4578-8995-90785f546b5d", true),
        ("42424242-4242-4242-0000-000000000000", false),
        ("search", false),
        ("Search", true),
        ("searches", true),
    ];
    for (text, expected) in cases {
        assert_eq!(check(text).is_ok(), expected, "{text}");
    }
    for forbidden in FORBIDDEN.chars() {
        assert!(check(&format!("ab{forbidden}cd")).is_err(), "{forbidden}");
    }
}

#[test]
fn a_uuid_is_its_own_key_and_an_alias_has_a_derived_key() {
    let uuid = "9ea0b7c7-fb9c-4d6a-8f7b-123456789abc";
    let plain = TokenId::of(TENANT, uuid);
    let shouted = TokenId::of(TENANT, &uuid.to_uppercase());
    let named = TokenId::of(TENANT, "order-17");

    assert_eq!(
        (plain.key.to_string().as_str(), plain.alias()),
        (uuid, None)
    );
    assert_ne!(shouted.key, plain.key);
    assert_eq!(shouted.text(), uuid.to_uppercase());
    assert_eq!(named.text(), "order-17");
    assert_eq!(named, TokenId::of(TENANT, "order-17"));
    assert_ne!(named.key, TokenId::of(TENANT, "Order-17").key);
}

#[test]
fn expressions_resolve_to_aliases() {
    let data = json!({"ssn": "111-22-3333", "email": "john.doe@gmail.com"});
    let resolved = |text: &str| NewId::parse(Some(text)).unwrap().resolve(TENANT, &data);

    let ssn = resolved("{{ data.ssn | alias_preserve_format: 0, 4 }}").unwrap();
    let email = "{{ data.email | split: '@' | first | alias_preserve_length }}@{{ data.email | split: '@' | last }}";
    let email = resolved(email).unwrap();

    assert!(
        ssn.text().ends_with("-3333") && ssn.text().len() == 11,
        "{ssn}"
    );
    assert!(
        email.text().ends_with("@gmail.com") && email.text().len() == 18,
        "{email}"
    );
    assert!(resolved("{{ data.missing }}").is_err());
    assert!(resolved("{{ data.email }}/x").is_err());
    assert!(NewId::parse(Some("{{ data | nofilter }}")).is_err());
    assert!(
        NewId::parse(Some("{{ data | alias_card }}"))
            .unwrap()
            .is_random()
    );
    assert!(!NewId::parse(Some("{{ data.email }}")).unwrap().is_random());
}
