//! Settling the data of a token: checked by type, and brought into the form that is kept.

use cloakroom_crypto::Sensitive;
use serde_json::Value;
use serde_json::value::RawValue;

use super::digits::{
    CARD_NUMBER, Digits, NETWORK_TOKEN_NUMBER, TAXPAYER_NUMBER, US_BANK_ACCOUNT_NUMBER,
    US_BANK_ROUTING_NUMBER,
};
use super::members::text;
use super::security_code::{self, SecurityCode};
use super::{TokenKind, bank, card};
use crate::access::TenantKind;
use crate::api::{Broken, merge_patch};

/// Data that follows the rules of its type.
#[derive(Debug)]
pub struct Settled {
    /// The JSON to seal. It never holds a security code.
    pub data: Sensitive<Vec<u8>>,
    pub security_code: SecurityCode,
}

/// Checks data by the rules of its type and brings it into the form that is kept.
///
/// What no rule speaks about stays as it came: order of members, text of numbers.
pub fn settle(
    kind: TokenKind,
    data: &RawValue,
    tenant_kind: TenantKind,
) -> Result<Settled, Vec<Broken>> {
    let check = |digits: &Digits| match text(data) {
        Some(text) if (digits.is_met)(text.expose(), tenant_kind) => Ok(()),
        Some(_) => Err(vec![digits.refuse("data")]),
        None => Err(vec![Broken::new("data", digits.rule)]),
    };
    match kind {
        TokenKind::Card => return card::settle(data, &CARD_NUMBER, tenant_kind),
        TokenKind::NetworkToken => return card::settle(data, &NETWORK_TOKEN_NUMBER, tenant_kind),
        TokenKind::Token if data.get() != "null" => {}
        TokenKind::Token => return Err(vec![Broken::new("data", "must not be null")]),
        TokenKind::Bank => bank::check(data, tenant_kind)?,
        TokenKind::CardNumber => check(&CARD_NUMBER)?,
        TokenKind::UsBankAccountNumber => check(&US_BANK_ACCOUNT_NUMBER)?,
        TokenKind::UsBankRoutingNumber => check(&US_BANK_ROUTING_NUMBER)?,
        TokenKind::SocialSecurityNumber | TokenKind::EmployerIdNumber => check(&TAXPAYER_NUMBER)?,
    }
    Ok(Settled {
        data: Sensitive::new(data.get().as_bytes().to_vec()),
        security_code: SecurityCode::Absent,
    })
}

/// Settles what a merge patch makes of data that is kept.
///
/// A null in a patch takes the member out, so the merged data cannot tell a security code that is
/// to go from one that nobody mentioned: the patch is asked.
pub fn settle_patched(
    kind: TokenKind,
    mut kept: Value,
    patch: Value,
    tenant_kind: TenantKind,
) -> Result<Settled, Vec<Broken>> {
    let removes_code =
        kind.has_security_code() && patch.get(security_code::MEMBER).is_some_and(Value::is_null);
    merge_patch(&mut kept, patch);
    let merged = Sensitive::new(kept.to_string());
    let merged: &RawValue = serde_json::from_str(merged.expose())
        .map_err(|_| vec![Broken::new("data", "must be expressible as JSON")])?;
    let mut settled = settle(kind, merged, tenant_kind)?;
    if removes_code {
        settled.security_code = SecurityCode::Removed;
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What is kept and the security code, or the paths that break a rule.
    type Outcome = Result<(String, Option<String>), Vec<String>>;

    fn outcome(settled: Result<Settled, Vec<Broken>>) -> Outcome {
        let told = |settled: Settled| {
            let code = match &settled.security_code {
                SecurityCode::Absent => None,
                SecurityCode::Given(code) => Some(code.expose().clone()),
                SecurityCode::Removed => Some("removed".to_owned()),
            };
            (String::from_utf8(settled.data.into_inner()).unwrap(), code)
        };
        settled
            .map(told)
            .map_err(|broken| broken.into_iter().map(|broken| broken.path).collect())
    }

    fn settled(kind: TokenKind, data: &str, tenant_kind: TenantKind) -> Outcome {
        let raw: &RawValue = serde_json::from_str(data).unwrap();
        outcome(settle(kind, raw, tenant_kind))
    }

    /// What is kept of data that a production tenant sends.
    fn assert_kept(kind: TokenKind, data: &str, kept: &str, code: Option<&str>) {
        let expected = Ok((kept.to_owned(), code.map(str::to_owned)));
        let outcome = settled(kind, data, TenantKind::Production);
        assert_eq!(outcome, expected, "{kind:?} {data}");
    }

    fn assert_refused(kind: TokenKind, data: &str, paths: &[&str]) {
        let expected = Err(paths.iter().map(|path| (*path).to_owned()).collect());
        for tenant_kind in [TenantKind::Test, TenantKind::Production] {
            let outcome = settled(kind, data, tenant_kind);
            assert_eq!(outcome, expected, "{kind:?} {data}");
        }
    }

    const CARD_LIKE: [TokenKind; 2] = [TokenKind::Card, TokenKind::NetworkToken];

    #[test]
    fn cards_and_network_tokens_are_settled() {
        #[rustfmt::skip]
        let cases = [
            (r#""number":"4242424242424242""#, r#""number":"4242424242424242""#, None),
            (r#""number":"4222222222222","expiration_month":1"#, r#""number":"4222222222222","expiration_month":1"#, None),
            (r#""number":"6304000000000000000","expiration_year":1000"#, r#""number":"6304000000000000000","expiration_year":1000"#, None),
            // Expired, and long ago.
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
            (r#""z":19.90,"number":"4242424242424242","a":{"cvc": 1E5},"CVC":"1","n":null"#, r#""z":19.90,"number":"4242424242424242","a":{"cvc": 1E5},"CVC":"1","n":null"#, None),
            (r#""number":"\u0034242424242424242""#, r#""number":"\u0034242424242424242""#, None),
        ];
        for (data, kept, code) in cases {
            for kind in CARD_LIKE {
                assert_kept(kind, &format!("{{{data}}}"), &format!("{{{kept}}}"), code);
            }
        }
    }

    #[test]
    fn cards_and_network_tokens_are_refused() {
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
                    assert_refused(kind, &data, &[&path]);
                }
            }
        }
        for (data, paths) in cases {
            for kind in CARD_LIKE {
                assert_refused(kind, &data, &paths);
            }
        }
    }

    #[test]
    fn card_numbers_pass_the_luhn_check_and_network_tokens_need_not() {
        // Number, whether it is one of a card, and of a network token.
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
            let is_settled = |kind, data| settled(kind, data, TenantKind::Production).is_ok();
            assert_eq!(
                is_settled(TokenKind::CardNumber, &text),
                is_card,
                "{number}"
            );
            assert_eq!(is_settled(TokenKind::Card, &object), is_card, "{number}");
            let is_ok = is_settled(TokenKind::NetworkToken, &object);
            assert_eq!(is_ok, is_network_token, "{number}");
        }
    }

    #[test]
    fn sixteen_test_numbers_are_cards_in_test_tenants_only() {
        for number in 4_200_000_000_000_000_u64..=4_200_000_000_000_019 {
            let text = json!(number.to_string()).to_string();
            let card = json!({ "number": number.to_string() }).to_string();
            let luhn = crate::card_numbers::passes_luhn(number.to_string().as_bytes());
            let is_published = (4_200_000_000_000_002..=4_200_000_000_000_017).contains(&number);
            let cases = [
                (TenantKind::Test, luhn || is_published),
                (TenantKind::Production, luhn),
            ];
            for (tenant_kind, expected) in cases {
                let is_settled = |kind, data| settled(kind, data, tenant_kind).is_ok();
                assert_eq!(
                    is_settled(TokenKind::CardNumber, &text),
                    expected,
                    "{number}"
                );
                assert_eq!(is_settled(TokenKind::Card, &card), expected, "{number}");
            }
        }
        let longer = "\"0004200000000000002\"";
        assert_refused(TokenKind::CardNumber, longer, &["data"]);
    }

    #[test]
    fn types_of_text_are_kept_as_they_came_or_refused() {
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
        for (kinds, accepted, refused) in cases {
            for kind in kinds {
                for text in accepted {
                    assert_kept(*kind, &format!("\"{text}\""), &format!("\"{text}\""), None);
                }
                for text in refused.iter().chain(&[""]) {
                    assert_refused(*kind, &format!("\"{text}\""), &["data"]);
                }
                for data in [
                    "123456789",
                    "4242424242424242",
                    "null",
                    "true",
                    "{}",
                    "[\"123\"]",
                ] {
                    assert_refused(*kind, data, &["data"]);
                }
            }
        }
    }

    #[test]
    fn bank_accounts_are_kept_as_they_came_or_refused() {
        #[rustfmt::skip]
        let accepted = [
            r#"{"routing_number":"021000021","account_number":"00001"}"#,
            r#"{"routing_number":"021000021","account_number":"1"}"#,
            r#"{"z": 1.50, "account_number": "12345678901234567", "cvc": 1, "routing_number": "122105155", "n": null}"#,
        ];
        for data in accepted {
            assert_kept(TokenKind::Bank, data, data, None);
        }

        let (routing, account) = ("data.routing_number", "data.account_number");
        #[rustfmt::skip]
        let refused: [(&str, &[&str]); 17] = [
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
        for (data, paths) in refused {
            assert_refused(TokenKind::Bank, data, paths);
        }
    }

    #[test]
    fn a_token_may_be_anything_but_null() {
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
            assert_kept(TokenKind::Token, data, data, None);
        }
        assert_refused(TokenKind::Token, "null", &["data"]);
    }

    /// What is kept and the security code, or the path that breaks a rule.
    type Patched<'a> = Result<(&'a str, Option<&'a str>), &'a str>;

    #[test]
    fn a_patch_is_settled_with_what_is_kept() {
        let kept = r#"{"n":19.90,"number":"4242424242424242","expiration_month":4,"z":1}"#;
        #[rustfmt::skip]
        let cases: [(&str, Patched<'_>); 9] = [
            ("{}", Ok((kept, None))),
            (r#"{"cvc":123}"#, Ok((kept, Some("123")))),
            (r#"{"cvc":null}"#, Ok((kept, Some("removed")))),
            (r#"{"cvc":"12"}"#, Err("data.cvc")),
            (r#"{"expiration_month":"05"}"#, Ok((r#"{"n":19.90,"number":"4242424242424242","expiration_month":5,"z":1}"#, None))),
            (r#"{"expiration_month":null}"#, Ok((r#"{"n":19.90,"number":"4242424242424242","z":1}"#, None))),
            (r#"{"number":null}"#, Err("data.number")),
            (r#""4242424242424242""#, Err("data")),
            ("null", Err("data")),
        ];
        for (patch, expected) in cases {
            let expected = expected
                .map(|(data, code)| (data.to_owned(), code.map(str::to_owned)))
                .map_err(|path| vec![path.to_owned()]);
            let value = |text| serde_json::from_str(text).unwrap();
            let patched = settle_patched(
                TokenKind::Card,
                value(kept),
                value(patch),
                TenantKind::Production,
            );
            assert_eq!(outcome(patched), expected, "{patch}");
        }
        let patched = settle_patched(
            TokenKind::Token,
            json!({"cvc": 1}),
            json!({"cvc": null}),
            TenantKind::Test,
        );
        assert_eq!(outcome(patched), Ok(("{}".to_owned(), None)));
    }

    #[test]
    fn rules_never_repeat_a_value() {
        let data = json!({
            "number": "9876", "expiration_month": "9876", "expiration_year": "98765",
            "cvc": "98765", "routing_number": "9876", "account_number": "9876x",
        });
        for kind in TokenKind::ALL {
            for data in [json!("9876x").to_string(), data.to_string()] {
                let raw: &RawValue = serde_json::from_str(&data).unwrap();
                for broken in settle(kind, raw, TenantKind::Test)
                    .err()
                    .into_iter()
                    .flatten()
                {
                    assert!(!broken.rule.contains("9876"), "{broken:?}");
                }
            }
        }
    }

    /// Any JSON, and objects that nearly follow the rules.
    fn any_data() -> impl Strategy<Value = Value> {
        let digits = prop_oneof![
            "[0-9-]{0,20}",
            Just("4242424242424242".to_owned()),
            Just("021000021".to_owned()),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0_u16..3000).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            digits.prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        let name = prop_oneof![
            "(number|expiration_month|expiration_year|cvc|routing_number|account_number)",
            "[a-z\"\\\\]{0,3}",
        ];
        leaf.prop_recursive(3, 24, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name.clone(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The same with members that follow the rules, so that most of it can be settled.
    fn likely_data() -> impl Strategy<Value = Value> {
        (any_data(), 1..13, any::<bool>()).prop_map(|(mut data, month, as_text)| {
            if let Value::Object(members) = &mut data {
                let month = match as_text {
                    true => json!(format!("{month:02}")),
                    false => json!(month),
                };
                let known = [
                    ("number", json!("4242424242424242")),
                    ("routing_number", json!("021000021")),
                    ("account_number", json!("00001")),
                    ("expiration_month", month),
                    ("expiration_year", json!(2030)),
                    ("cvc", json!(123)),
                ];
                for (name, value) in known {
                    members.insert(name.to_owned(), value);
                }
            }
            data
        })
    }

    proptest! {
        #[test]
        fn settled_data_settles_to_itself(
            data in prop_oneof![any_data(), likely_data()],
            kind in prop::sample::select(TokenKind::ALL.to_vec()),
            tenant_kind in prop::sample::select(vec![TenantKind::Test, TenantKind::Production]),
        ) {
            if let Ok((kept, _)) = settled(kind, &data.to_string(), tenant_kind) {
                let again = settled(kind, &kept, tenant_kind);
                prop_assert_eq!(again, Ok((kept, None)));
            }
        }
    }
}
