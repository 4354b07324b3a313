//! Cards, card numbers and network tokens.

use cloakroom_core::access::TenantKind;
use serde_json::json;

use super::{assert_accepted, assert_rejected, validated};
use crate::types::TokenKind;

const CARD_LIKE: [TokenKind; 2] = [TokenKind::Card, TokenKind::NetworkToken];

#[test]
fn valid_cards_and_network_tokens_are_normalized() {
    #[rustfmt::skip]
    let cases = [
        (r#""number":"4242424242424242""#, r#""number":"4242424242424242""#, None),
        (r#""number":"4222222222222","expiration_month":1"#, r#""number":"4222222222222","expiration_month":1"#, None),
        (r#""number":"6304000000000000000","expiration_year":1000"#, r#""number":"6304000000000000000","expiration_year":1000"#, None),
        // Expired.
        (r#""number":"4242424242424242","expiration_month":4,"expiration_year":2025"#, r#""number":"4242424242424242","expiration_month":4,"expiration_year":2025"#, None),
        (r#""number":"4242424242424242","expiration_month":12,"expiration_year":9999"#, r#""number":"4242424242424242","expiration_month":12,"expiration_year":9999"#, None),
        (r#""number":"4242424242424242","expiration_month":"02","expiration_year":"2030""#, r#""number":"4242424242424242","expiration_month":2,"expiration_year":2030"#, None),
        (r#""expiration_month":"2","number":"4242424242424242""#, r#""expiration_month":2,"number":"4242424242424242""#, None),
        (r#""number":"4242424242424242","expiration_month":null,"expiration_year":null"#, r#""number":"4242424242424242""#, None),
        (r#""number":"4242424242424242","cvc":"123""#, r#""number":"4242424242424242""#, Some("123")),
        (r#""number":"4242424242424242","cvc":"0123""#, r#""number":"4242424242424242""#, Some("0123")),
        (r#""number":"4242424242424242","cvc":123"#, r#""number":"4242424242424242""#, Some("123")),
        (r#""cvc":1234,"number":"4242424242424242""#, r#""number":"4242424242424242""#, Some("1234")),
        (r#""\u0063vc":"12\u0033","number":"4242424242424242""#, r#""number":"4242424242424242""#, Some("123")),
        (r#""number":"4242424242424242","cvc":null"#, r#""number":"4242424242424242""#, Some("removed")),
        (r#""z":19.90,"number":"4242424242424242","a":{"b": 1E5},"n":null"#, r#""z":19.90,"number":"4242424242424242","a":{"b": 1E5},"n":null"#, None),
        (r#""number":"4242424242424242","CVV":"123""#, r#""number":"4242424242424242""#, Some("123")),
        (r#""security_code":1234,"number":"4242424242424242","a":1"#, r#""number":"4242424242424242","a":1"#, Some("1234")),
        (r#""number":"4242424242424242","cid":"1234""#, r#""number":"4242424242424242""#, Some("1234")),
        (r#""number":"4242424242424242","cid":"customer-7""#, r#""number":"4242424242424242","cid":"customer-7""#, None),
        (r#""number":"4242424242424242","pin_block":null,"cvc_result":"M""#, r#""number":"4242424242424242","pin_block":null,"cvc_result":"M""#, None),
        (r#""number":"\u0034242424242424242""#, r#""number":"\u0034242424242424242""#, None),
    ];
    for (data, stored, code) in cases {
        for kind in CARD_LIKE {
            assert_accepted(kind, &format!("{{{data}}}"), &format!("{{{stored}}}"), code);
        }
    }
}

#[test]
fn invalid_cards_and_network_tokens_are_rejected() {
    let mut cases = vec![
        ("{}".to_owned(), vec!["data.number"]),
        (
            r#"{"number":"1","expiration_month":0,"expiration_year":"x","cvc":12}"#.to_owned(),
            vec![
                "data.number",
                "data.expiration_month",
                "data.expiration_year",
                "data.cvc",
            ],
        ),
    ];
    for data in [
        "\"4242424242424242\"",
        "4242424242424242",
        "[]",
        "null",
        "true",
    ] {
        cases.push((data.to_owned(), vec!["data"]));
    }
    #[rustfmt::skip]
    let members: [(&str, &[&str]); 4] = [
        ("number", &[
            "4242424242424242", "null", "[]", "\"\"", "\"42424242424\"", "\"42424242424242424242\"",
            "\"4242 4242 4242 4242\"", "\"4242-4242-4242-4242\"", "\" 4242424242424242\"",
            "\"4242424242424242\\n\"", "\"\u{ff14}242424242424242\"", "\"+424242424242424\"",
        ]),
        ("expiration_month", &[
            "0", "13", "-1", "1.5", "1.0", "1e0", "true", "[]", "{}", "\"\"", "\"0\"", "\"13\"", "\"+1\"",
            "\" 1\"", "\"1.0\"", "\"001\"", "\"May\"", "99999999999999999999",
        ]),
        ("expiration_year", &[
            "0", "30", "999", "10000", "-2030", "2030.0", "false", "[]", "\"\"", "\"30\"", "\"02030\"",
            "\"0999\"", "\"10000\"", "\"203x\"", "99999999999999999999",
        ]),
        ("cvc", &[
            "0", "12", "12345", "-12", "1.5", "1e3", "true", "[]", "{}", "\"\"", "\"12\"", "\"12345\"",
            "\"12a\"", "\" 12\"", "\"-123\"", "\"null\"",
        ]),
    ];
    for (name, values) in members {
        let path = ["data.", name].concat();
        for value in values {
            let data = match name {
                "number" => format!("{{\"number\":{value}}}"),
                _ => format!("{{\"number\":\"4242424242424242\",\"{name}\":{value}}}"),
            };
            for kind in CARD_LIKE {
                assert_rejected(kind, &data, &[&path]);
            }
        }
    }
    for (data, paths) in cases {
        for kind in CARD_LIKE {
            assert_rejected(kind, &data, &paths);
        }
    }
}

#[test]
fn authentication_data_in_cards_is_rejected() {
    #[rustfmt::skip]
    let forbidden = [
        (r#""CVC":"1""#, "data.CVC"),
        (r#""cvc":"123","cvv":"123""#, "data.cvv"),
        (r#""a":{"cvc":"123"}"#, "data.a.cvc"),
        (r#""a":[{"Card_CVV2":123}]"#, "data.a[0].Card_CVV2"),
        (r#""track2":"x""#, "data.track2"),
        (r#""raw":";4242424242424242=30122011000?""#, "data.raw"),
        (r#""raw":["%B4242424242424242^DOE/J^30122011?"]"#, "data.raw[0]"),
        (r#""pin":"1234""#, "data.pin"),
        (r#""PIN-block":"041234FFFFFFFFFF""#, "data.PIN-block"),
    ];
    for (member, path) in forbidden {
        let data = format!(r#"{{"number":"4242424242424242",{member}}}"#);
        for kind in CARD_LIKE {
            assert_rejected(kind, &data, &[path]);
        }
    }
}

#[test]
fn card_numbers_pass_the_luhn_check_and_network_tokens_need_not() {
    // Number, whether it is valid for a card, and for a network token.
    let cases = [
        ("42424242422", false, false),
        ("424242424242", false, true),
        ("4222222222222", true, true),
        ("378282246310005", true, true),
        ("36227206271667", true, true),
        ("4242424242424242", true, true),
        ("4242424242424241", false, true),
        ("5589092000000000006", true, true),
        ("6304000000000000000", true, true),
        ("42424242424242424242", false, false),
    ];
    for (number, is_card, is_network_token) in cases {
        let text = json!(number).to_string();
        let object = json!({ "number": number }).to_string();
        let is_valid = |kind, data| validated(kind, data, TenantKind::Production).is_ok();
        assert_eq!(is_valid(TokenKind::CardNumber, &text), is_card, "{number}");
        assert_eq!(is_valid(TokenKind::Card, &object), is_card, "{number}");
        let is_ok = is_valid(TokenKind::NetworkToken, &object);
        assert_eq!(is_ok, is_network_token, "{number}");
    }
}

#[test]
fn test_numbers_are_valid_in_test_tenants_only() {
    for number in 4_200_000_000_000_000_u64..=4_200_000_000_000_019 {
        let text = json!(number.to_string()).to_string();
        let card = json!({ "number": number.to_string() }).to_string();
        let luhn = cloakroom_platform::card_numbers::passes_luhn(number.to_string().as_bytes());
        let is_published = (4_200_000_000_000_002..=4_200_000_000_000_017).contains(&number);
        let cases = [
            (TenantKind::Test, luhn || is_published),
            (TenantKind::Production, luhn),
        ];
        for (tenant_kind, expected) in cases {
            let is_valid = |kind, data| validated(kind, data, tenant_kind).is_ok();
            assert_eq!(is_valid(TokenKind::CardNumber, &text), expected, "{number}");
            assert_eq!(is_valid(TokenKind::Card, &card), expected, "{number}");
        }
    }
    let longer = "\"0004200000000000002\"";
    assert_rejected(TokenKind::CardNumber, longer, &["data"]);
}
