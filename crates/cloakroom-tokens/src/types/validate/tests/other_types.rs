//! Bank accounts, identification numbers, and tokens of any JSON.

use super::{assert_accepted, assert_rejected};
use crate::types::TokenKind;

#[test]
fn text_types_are_stored_unchanged_or_rejected() {
    use TokenKind::*;

    #[rustfmt::skip]
    let cases: [(&[TokenKind], &[&str], &[&str]); 4] = [
        (
            &[CardNumber],
            &["4242424242424242", "\\u0034242424242424242"],
            &["4242 4242 4242 4242", "4242-4242-4242-4242", "424242424242424a"],
        ),
        (
            &[UsBankAccountNumber],
            &["000", "123", "12345678901234567"],
            &["12", "123456789012345678", "12-34", "12 34", "12a4", "\u{661}\u{662}\u{663}"],
        ),
        (
            &[UsBankRoutingNumber],
            &["021000021", "011401533", "122105155", "000000000"],
            &["021000022", "120000021", "02100002", "0210000210", "02100-0021", "02100002x"],
        ),
        (
            &[SocialSecurityNumber, EmployerIdNumber],
            &["078051120", "078-05-1120", "12-3456789", "-0-7-8051120-", "0780511--20"],
            &["07805112", "0780511201", "078-05-112", "078 05 1120", "078.05.1120", "07805112a", "---------"],
        ),
    ];
    for (kinds, accepted, rejected) in cases {
        for kind in kinds {
            for text in accepted {
                assert_accepted(*kind, &format!("\"{text}\""), &format!("\"{text}\""), None);
            }
            for text in rejected.iter().chain(&[""]) {
                assert_rejected(*kind, &format!("\"{text}\""), &["data"]);
            }
            for data in [
                "123456789",
                "4242424242424242",
                "null",
                "true",
                "{}",
                "[\"123\"]",
            ] {
                assert_rejected(*kind, data, &["data"]);
            }
        }
    }
}

#[test]
fn bank_accounts_are_stored_unchanged_or_rejected() {
    #[rustfmt::skip]
    let accepted = [
        r#"{"routing_number":"021000021","account_number":"00001"}"#,
        r#"{"routing_number":"021000021","account_number":"1"}"#,
        r#"{"z": 1.50, "account_number": "12345678901234567", "cvc": 1, "routing_number": "122105155", "n": null}"#,
    ];
    for data in accepted {
        assert_accepted(TokenKind::Bank, data, data, None);
    }

    let (routing, account) = ("data.routing_number", "data.account_number");
    #[rustfmt::skip]
    let rejected: [(&str, &[&str]); 17] = [
        ("{}", &[routing, account]),
        (r#"{"routing_number":"021000021"}"#, &[account]),
        (r#"{"account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":"021000022","account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":"02100002","account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":"0210000210","account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":"0210-00021","account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":122105155,"account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":null,"account_number":"00001"}"#, &[routing]),
        (r#"{"routing_number":"021000021","account_number":""}"#, &[account]),
        (r#"{"routing_number":"021000021","account_number":"123456789012345678"}"#, &[account]),
        (r#"{"routing_number":"021000021","account_number":"00-001"}"#, &[account]),
        (r#"{"routing_number":"021000021","account_number":1}"#, &[account]),
        (r#"{"routing_number":"021000021","account_number":null}"#, &[account]),
        (r#""021000021""#, &["data"]),
        ("[]", &["data"]),
        ("null", &["data"]),
    ];
    for (data, paths) in rejected {
        assert_rejected(TokenKind::Bank, data, paths);
    }
}

#[test]
fn a_token_accepts_any_json_except_null() {
    let cases = [
        "0",
        "1.50",
        "1E5",
        "true",
        "\"\"",
        "\"null\"",
        "[ 1,null ]",
        r#"{"cvc": "123"}"#,
        "{}",
    ];
    for data in cases {
        assert_accepted(TokenKind::Token, data, data, None);
    }
    assert_rejected(TokenKind::Token, "null", &["data"]);
}

#[test]
fn authentication_data_with_a_card_number_is_rejected() {
    #[rustfmt::skip]
    let cases = [
        (r#"{"number":"4242 4242 4242 4242","cvc":"123"}"#, Some("data.cvc")),
        (r#"{"pan":"5066991111111118","a":{"CVV2":"123"}}"#, Some("data.a.CVV2")),
        (r#"["4242424242424242",{"pin":"1234"}]"#, Some("data[1].pin")),
        (r#"{"4242424242424242":{"pin_block":"x"}}"#, Some("data")),
        (r#"";4242424242424242=30122011000?""#, Some("data")),
        (r#"{"a":"%B4242424242424242^DOE/J^30122011?"}"#, Some("data.a")),
        (r#"{"pin":"1234"}"#, None),
        (r#"{"cvc":"123"}"#, None),
        (r#"{"track2":"x"}"#, None),
        (r#"{"number":"4242424242424242","cvc":null,"cid":"7","pin":"top"}"#, None),
    ];
    for (data, path) in cases {
        match path {
            Some(path) => assert_rejected(TokenKind::Token, data, &[path]),
            None => assert_accepted(TokenKind::Token, data, data, None),
        }
    }
}
