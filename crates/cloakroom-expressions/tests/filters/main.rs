//! The custom filters of section 4, tested with their documented examples.

mod errors;

use cloakroom_expressions::{Context, EvaluationError, HmacAlgorithm, Scope, Sources, Template};
use serde_json::{Value, json};

const V1: &str = "3622-7206-2716-5567";
const V2: &str = "3622720627165567";
const V3: &str = "36227206271667";

/// Deterministic randomness: every letter is from the middle of the alphabet, every digit is five.
fn fixed_random(bytes: &mut [u8]) {
    bytes.fill(0x80);
}

/// Returns the HMAC of the documented example and rejects any other input.
fn hmac(algorithm: HmacAlgorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    assert_eq!(algorithm, HmacAlgorithm::Sha256);
    assert_eq!(key, b"secretKeyValue");
    assert_eq!(message, b"4242424242424242");
    vec![
        0x90, 0xA0, 0x05, 0x0E, 0x90, 0x51, 0x51, 0x01, 0xDC, 0xAD, 0x0F, 0x68, 0x95, 0x53, 0x70,
        0xCC, 0xA8, 0x1F, 0x6D, 0xCB, 0x9D, 0x29, 0x9E, 0x7E, 0x05, 0x85, 0xCC, 0x97, 0x46, 0x71,
        0x6D, 0x9B,
    ]
}

#[expect(clippy::unwrap_used, reason = "every filter in these tables parses")]
fn apply_filter(data: Value, filter: &str) -> Result<Value, EvaluationError> {
    let text = format!("{{{{ data | {filter} }}}}");
    let template = Template::parse(Context::Mask, &text).unwrap();
    template.evaluate(&Scope {
        variables: &[("data", &data)],
        sources: Sources {
            now: None,
            random: Some(&fixed_random),
            hmac: Some(&hmac),
        },
    })
}

fn check(cases: &[(Value, &str, Value)]) {
    for (data, filter, expected) in cases {
        let result = apply_filter(data.clone(), filter);
        assert_eq!(result.as_ref(), Ok(expected), "{data} | {filter}");
    }
}

#[test]
fn section_4_documented_examples() {
    check(&[
        (json!(V1), "reveal: 6", json!("3622-7XXXXXXXXXXXXX")),
        (json!(V1), "reveal: 7, 5", json!("3622-72XXXXXXX-5567")),
        (json!(V1), "reveal: 7, 5, '#'", json!("3622-72#######-5567")),
        (
            json!(V1),
            "reveal: 7, 4, '#', \"-\"",
            json!("3622-72##-####-5567"),
        ),
        (json!(V1), "reveal: 10, 9", json!("X".repeat(19))),
        (json!(V3), "reveal_last: 6", json!("XXXXXXXX271667")),
        (json!(V3), "reveal_last: 3, '#'", json!("###########667")),
        (
            json!("4242-4242-4242-4242"),
            "reveal_last: 4",
            json!("XXXX-XXXX-XXXX-4242"),
        ),
        (json!("123-45-6789"), "reveal_last: 4", json!("XXX-XX-6789")),
        (json!("12-3456789"), "reveal_last: 4", json!("XX-XXX6789")),
        (
            json!("Sensitive Value"),
            "reveal_last: 4",
            json!("XXXXXXXXXXXalue"),
        ),
        (
            json!(V2),
            "card_mask: 'true', 'true', '#', '-'",
            json!("36227206####5567"),
        ),
        (
            json!(V1),
            "card_mask: 'true', 'true', '#', '-'",
            json!("3622-7206-####-5567"),
        ),
        (
            json!(V1),
            "card_mask: 'false', 'false', 'X', '-'",
            json!("XXXX-XXXX-XXXX-XXXX"),
        ),
        (json!(V2), "card_bin", json!("36227206")),
        (
            json!({ "expiration_month": 10, "expiration_year": 2028 }),
            "card_exp: 'MM/YY'",
            json!("10/28"),
        ),
        (json!("1234"), "pad_left: 6, '0'", json!("001234")),
        (json!("1234"), "pad_left: 2, '0'", json!("1234")),
        (json!(3), "pad_left: 2, '0'", json!("03")),
        (
            json!("4242424242424242"),
            "hmac: 'sha-256', 'secretKeyValue' | to_base16",
            json!("90A0050E90515101DCAD0F68955370CCA81F6DCB9D299E7E0585CC9746716D9B"),
        ),
    ]);
}

#[test]
fn section_4_reveal_edge_cases() {
    check(&[
        (json!(V1), "reveal", json!("X".repeat(19))),
        (
            json!(V1),
            "reveal: 0, 4, 'X', '-'",
            json!("XXXX-XXXX-XXXX-5567"),
        ),
        (
            json!(V1),
            "reveal: 19, 0, 'X', '-'",
            json!("XXXX-XXXX-XXXX-XXXX"),
        ),
        (json!("a-b"), "reveal: 1, 1, 'X', '-'", json!("X-X")),
        (json!("äöü"), "reveal: 1", json!("äXX")),
        (json!(12345), "reveal: 1, 1", json!("1XXX5")),
        (json!(""), "reveal: 1", json!("")),
        (json!("1234"), "reveal_last: 4", json!("1234")),
        (json!("123"), "reveal_last: 4", json!("123")),
        (json!("12345"), "reveal_last: '4'", json!("X2345")),
        (json!("12345"), "reveal_last: 0", json!("XXXXX")),
        (
            json!("12345"),
            "reveal_last: 2, allow: true",
            json!("XXX45"),
        ),
        (
            json!("12345"),
            "reveal_last: 2, mask: '#', '*'",
            json!("***45"),
        ),
        (json!("日本語"), "reveal_last: 1, '●'", json!("●●語")),
        (json!(null), "reveal_last: 4", json!(null)),
        (json!(null), "reveal: 1", json!(null)),
        (json!("4242424242424242"), "last4", json!("4242")),
        (json!("42"), "last4", json!("42")),
        (json!(123456), "last4", json!("3456")),
        (json!(null), "last4", json!(null)),
    ]);
}

#[test]
fn section_4_json_edge_cases() {
    let object = json!({ "b": 1, "a": [true, null, "x"] });
    check(&[
        (
            object.clone(),
            "stringify",
            json!(r#"{"b":1,"a":[true,null,"x"]}"#),
        ),
        (
            object.clone(),
            "json_stringify",
            json!(r#"{"b":1,"a":[true,null,"x"]}"#),
        ),
        (json!("say \"x\""), "stringify", json!("say \"x\"")),
        (json!(19.5), "stringify", json!("19.5")),
        (json!(false), "json_stringify", json!("false")),
        (json!(null), "stringify", json!(null)),
        (json!(12), "to_string", json!("12")),
        (json!(true), "to_string", json!("true")),
        (json!("x"), "to_string", json!("x")),
        (json!(null), "to_string", json!(null)),
        (
            json!(2025),
            "to_string | last4 | reveal_last: 2",
            json!("XX25"),
        ),
        (object.clone(), "stringify | last4", json!("x\"]}")),
        (object.clone(), "json: '$.a[2]'", json!("x")),
        (object.clone(), "json: '$.b'", json!(1)),
        (object.clone(), "json: '$.missing'", json!(null)),
        (object.clone(), "json: '$'", object.clone()),
        (object.clone(), "json: \"$['b']\"", json!(1)),
        (json!("text"), "json: '$.b'", json!(null)),
        (json!(null), "json: '$.b'", json!(null)),
        (
            json!({ "request": { "headers": { "X-User-Id": "u" } } }),
            "json: '$.request.headers.X-User-Id'",
            json!("u"),
        ),
        (
            json!([{ "x": 20 }, { "x": 3 }]),
            "json: '$[?(@.x < 10)].x'",
            json!(3),
        ),
    ]);
}

#[test]
fn section_4_cards_and_aliases_edge_cases() {
    check(&[
        (json!("12"), "pad_right: 4, '.'", json!("12..")),
        (json!(null), "pad_left: 4, '.'", json!(null)),
        (json!(V3), "card_mask: true, true", json!("362272XXXX1667")),
        (json!(V3), "card_mask", json!("X".repeat(14))),
        (
            json!("4242424242"),
            "card_mask: true, true",
            json!("X".repeat(10)),
        ),
        (json!(V1), "card_bin: '-'", json!("36227206")),
        (json!(V3), "card_bin", json!("362272")),
        (json!(null), "card_bin", json!(null)),
        (
            json!(V2),
            "alias_card: true, true",
            json!("3622720655555567"),
        ),
        (json!(V1), "alias_card", json!("5555-5555-5555-5555")),
        (json!("3622 7206"), "alias_card", json!("5555 5555")),
        (
            json!("111-22-3333"),
            "alias_preserve_format: 0, 4",
            json!("555-55-3333"),
        ),
        (json!("Ab-1ä"), "alias_preserve_format", json!("nn-5n")),
        (
            json!("john.doe"),
            "alias_preserve_length",
            json!("ssssssss"),
        ),
        (
            json!("john.doe"),
            "alias_preserve_length: 1, 2",
            json!("jsssssoe"),
        ),
        (json!(null), "alias_preserve_length", json!(null)),
    ]);
}

#[test]
fn section_4_conversions_edge_cases() {
    check(&[
        (json!("12"), "to_number", json!(12)),
        (json!("19.90"), "to_number | to_string", json!("19.90")),
        (json!("007"), "to_number", json!(7)),
        (json!(1.5), "to_number", json!(1.5)),
        (json!(null), "to_number", json!(null)),
        (json!(true), "to_boolean", json!(true)),
        (json!("FALSE"), "to_boolean", json!(false)),
        (json!(null), "to_boolean", json!(null)),
        (json!("héllo"), "to_base64", json!("aMOpbGxv")),
        (json!("hi"), "to_base16", json!("6869")),
        (
            json!("4242424242424242"),
            "hmac: nil, 'secretKeyValue' | to_base64",
            json!("kKAFDpBRUQHcrQ9olVNwzKgfbcudKZ5+BYXMl0ZxbZs="),
        ),
    ]);
}

#[test]
fn section_4_card_expiry_formats() {
    let data = json!({ "expiration_month": 2, "expiration_year": 2028 });
    let formats = [
        ("MM", "02"),
        ("MMYY", "0228"),
        ("MMYYYY", "022028"),
        ("MM/YY", "02/28"),
        ("MM/YYYY", "02/2028"),
        ("MM_YYYY", "02_2028"),
        ("MM-YYYY", "02-2028"),
        ("YYYY", "2028"),
        ("YYYYMM", "202802"),
        ("YYYY-MM", "2028-02"),
        ("YYYY/MM", "2028/02"),
    ];
    for (format, expected) in formats {
        let filter = format!("card_exp: '{format}'");
        assert_eq!(apply_filter(data.clone(), &filter), Ok(json!(expected)));
    }
}

#[test]
fn a_filter_without_its_source_is_unavailable() {
    let data = json!("now");
    let cases = [
        ("alias_card", EvaluationError::Unavailable("alias_card")),
        (
            "hmac: 'sha-1', 'k' | to_base16",
            EvaluationError::Unavailable("hmac"),
        ),
        ("date: '%Y'", EvaluationError::Unavailable("date")),
    ];
    for (filter, expected) in cases {
        let text = format!("{{{{ data | {filter} }}}}");
        let template = Template::parse(Context::Mask, &text).unwrap();
        let variables = [("data", &data)];
        let scope = Scope::of(&variables);
        assert_eq!(template.evaluate(&scope), Err(expected), "{filter}");
    }
}
