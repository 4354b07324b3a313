//! Tests of api key.

use super::*;

#[test]
fn generated_keys_encode_environment_and_type() {
    for tenant_kind in [TenantKind::Test, TenantKind::Production] {
        for application_kind in ApplicationKind::ALL {
            let key = ApiKey::generate(tenant_kind, "eu", application_kind);
            let text = key.expose();

            let parts = KeyParts::parse(text).unwrap();

            assert!(parts.tenant_kind == tenant_kind, "{text}");
            assert!(parts.application_kind == application_kind, "{text}");
            assert_eq!(parts.prefix.len(), PREFIX_LENGTH);
            assert!(text.len() <= LENGTH_MAX);
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
            );
        }
    }
}

#[test]
fn malformed_keys_do_not_parse() {
    let random = "1111111111111111111111";
    let suffix = "0".repeat(32);
    let cases = [
        (format!("key_test_us_pub_{random}"), true),
        (format!("key_prod_us_pvt_{random}.{suffix}"), true),
        (format!("key_test_us_pub_{random}.{suffix}"), false),
        (format!("key_test_us_pvt_{random}"), false),
        (
            format!("key_test_us_pvt_{random}.{}", "g".repeat(32)),
            false,
        ),
        (format!("key_test_US_pub_{random}"), false),
        (format!("key_live_us_pub_{random}"), false),
        (format!("key_test_us_ses_{random}"), true),
        (format!("key_test_us_ses_{random}.{suffix}"), false),
        (format!("key_test_us_sex_{random}"), false),
        (format!("key_test_us_pub_{random}1"), false),
        (format!("key_test_us_pub_{}", "0".repeat(22)), false),
        (format!("key_test_us_pub_{random}_x"), false),
        (format!("kez_test_us_pub_{random}"), false),
        ("é".repeat(30), false),
        (String::new(), false),
    ];
    for (text, expected) in cases {
        assert_eq!(KeyParts::parse(&text).is_some(), expected, "{text}");
    }
}

#[test]
fn legacy_keys_have_no_environment_and_a_minimum_length() {
    let cases = [
        ("key_1111111111111111111111".to_owned(), true),
        ("key_us_pvt_1111111111.00000000000".to_owned(), true),
        ("key_live_us_pub_1111111111111111111111".to_owned(), true),
        ("1".repeat(22), true),
        ("1".repeat(21), false),
        ("key_us_pvt_111111111111111111111".to_owned(), false),
        ("a".repeat(100), true),
        ("a".repeat(101), false),
        ("key_test_us_pub_1111111111111111111111".to_owned(), false),
        ("key_prod_us_pub_1".to_owned(), false),
        ("1111111111_prod_1111111111".to_owned(), false),
        ("key-1111111111111111111111".to_owned(), false),
        ("key_111111111111111111111 ".to_owned(), false),
        ("\u{e9}".repeat(26), false),
        (String::new(), false),
    ];
    for (text, expected) in cases {
        assert_eq!(LegacyKey::parse(&text).is_some(), expected, "{text}");
        assert!(!expected || KeyParts::parse(&text).is_none(), "{text}");
    }
}
