//! Tests of fingerprint.

use serde_json::json;

use super::*;

fn described(numbers: &[CandidateNumber]) -> Vec<String> {
    let describe = |number: &CandidateNumber| match number {
        CandidateNumber::Card(digits) => format!("card {}", digits.expose()),
        CandidateNumber::Identifier { kind, digits } => format!("{kind} {}", digits.expose()),
    };
    numbers.iter().map(describe).collect()
}

#[test]
fn numbers_are_extracted_by_type() {
    use TokenKind::{Bank, Card, SocialSecurityNumber, Token};
    let bank = json!({"routing_number": "021000021", "account_number": "123456789"});
    let cases = [
        (
            Card,
            json!({"number": "5066991111111118"}),
            None,
            &["card 5066991111111118"][..],
        ),
        (
            SocialSecurityNumber,
            json!("078-05-1120"),
            None,
            &["social_security_number 078051120"],
        ),
        (
            SocialSecurityNumber,
            json!("078-05-1120"),
            Some("219-09-9999"),
            &[
                "social_security_number 078051120",
                "social_security_number 219099999",
            ],
        ),
        (Bank, bank, None, &["bank 123456789"]),
        (
            Token,
            json!({"a": "1234567890123452"}),
            None,
            &["card 1234567890123452"],
        ),
        (Token, json!({"a": "078-05-1120"}), None, &[]),
    ];
    for (kind, data, digested, expected) in cases {
        assert_eq!(
            described(&numbers_of(kind, &data, digested)),
            expected,
            "{data}"
        );
    }
}

#[test]
fn searches_count_every_type_that_a_value_could_have() {
    let nine = [
        "bank 078051120",
        "us_bank_account_number 078051120",
        "us_bank_routing_number 078051120",
        "social_security_number 078051120",
        "employer_id_number 078051120",
    ];
    let cases = [
        ("078-05-1120", &nine[..]),
        ("1120", &[]),
        (
            "12345678",
            &["bank 12345678", "us_bank_account_number 12345678"],
        ),
        (
            "7926399999999990",
            &[
                "card 7926399999999990",
                "bank 7926399999999990",
                "us_bank_account_number 7926399999999990",
            ],
        ),
        ("order 078051120", &[]),
    ];
    for (value, expected) in cases {
        assert_eq!(described(&numbers_in_search(value)), expected, "{value}");
    }
}

#[test]
fn fingerprints_are_encoded_in_base58() {
    let mut cases = vec![[0; 32], [255; 32]];
    for zeros in 0..32 {
        let mut bytes = [0; 32];
        bytes[zeros..].fill(7);
        cases.push(bytes);
    }
    cases.extend((0..1_000).map(|_| cloakroom_crypto::random_bytes()));
    for bytes in cases {
        let expected = bs58::encode(bytes).into_string();
        assert_eq!(base58(&Fingerprint::from(bytes)), expected);
    }
}
