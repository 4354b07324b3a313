//! Patches, validated with the stored data.

use cloakroom_core::access::TenantKind;
use serde_json::json;

use super::outcome;
use crate::types::TokenKind;
use crate::types::validate::validate_patched;

/// The stored data and the security code, or the path of the error.
type Patched<'a> = Result<(&'a str, Option<&'a str>), &'a str>;

#[test]
fn a_patch_is_validated_with_the_stored_data() {
    let stored = r#"{"n":19.90,"number":"4242424242424242","expiration_month":4,"z":1}"#;
    #[rustfmt::skip]
    let cases: [(&str, Patched<'_>); 15] = [
        ("{}", Ok((stored, None))),
        (r#"{"cvc":123}"#, Ok((stored, Some("123")))),
        (r#"{"cvc":null}"#, Ok((stored, Some("removed")))),
        (r#"{"CVV":null}"#, Ok((stored, Some("removed")))),
        (r#"{"card_cvv":"123"}"#, Ok((stored, Some("123")))),
        (r#"{"track2":"x"}"#, Err("data.track2")),
        (r#"{"cvc":"12"}"#, Err("data.cvc")),
        (r#"{"expiration_month":"05"}"#, Ok((r#"{"n":19.90,"number":"4242424242424242","expiration_month":5,"z":1}"#, None))),
        (r#"{"expiration_month":null}"#, Ok((r#"{"n":19.90,"number":"4242424242424242","z":1}"#, None))),
        (r#"{"number":"5555555555554444"}"#, Ok((r#"{"n":19.90,"number":"5555555555554444","expiration_month":4,"z":1}"#, Some("removed")))),
        (r#"{"number":"4242424242424242"}"#, Ok((stored, Some("removed")))),
        (r#"{"number":"4242424242424242","cvc":"123"}"#, Ok((stored, Some("123")))),
        (r#"{"number":null}"#, Err("data.number")),
        (r#""4242424242424242""#, Err("data")),
        ("null", Err("data")),
    ];
    for (patch, expected) in cases {
        let expected = expected
            .map(|(data, code)| (data.to_owned(), code.map(str::to_owned)))
            .map_err(|path| vec![path.to_owned()]);
        let value = |text| serde_json::from_str(text).unwrap();
        let patched = validate_patched(
            TokenKind::Card,
            value(stored),
            value(patch),
            TenantKind::Production,
        );
        assert_eq!(outcome(patched), expected, "{patch}");
    }
    let patched = validate_patched(
        TokenKind::Token,
        json!({"cvc": 1}),
        json!({"cvc": null}),
        TenantKind::Test,
    );
    assert_eq!(outcome(patched), Ok(("{}".to_owned(), None)));
}
