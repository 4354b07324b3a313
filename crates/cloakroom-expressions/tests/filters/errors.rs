//! Inputs and arguments that the custom filters reject.

use cloakroom_expressions::EvaluationError;
use serde_json::{Value, json};

use super::apply_filter;

fn check_errors(cases: &[(Value, &str, EvaluationError)]) {
    for (data, filter, expected) in cases {
        let result = apply_filter(data.clone(), filter);
        assert_eq!(result.as_ref(), Err(expected), "{data} | {filter}");
    }
}

#[test]
fn section_4_masking_errors() {
    check_errors(&[
        (
            json!({}),
            "to_string",
            EvaluationError::NotText("to_string"),
        ),
        (json!([1]), "last4", EvaluationError::NotText("last4")),
        (json!([]), "reveal: 1", EvaluationError::NotText("reveal")),
        (
            json!({}),
            "reveal_last: 1",
            EvaluationError::NotText("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: -1",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: 1.5",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: 'many'",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: nil",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: data.x",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: 1, ''",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal_last: 1, 'XY'",
            EvaluationError::BadArgument("reveal_last"),
        ),
        (
            json!("1"),
            "reveal: 1, 1, 'X', nil",
            EvaluationError::BadArgument("reveal"),
        ),
    ]);
}

#[test]
fn section_4_value_errors() {
    check_errors(&[
        (
            json!([1, 2]),
            "json: '$[*]'",
            EvaluationError::ManyMatches("json"),
        ),
        (
            json!(["data"]),
            "json: data[0]",
            EvaluationError::BadPath("json"),
        ),
        (
            json!({ "expiration_month": 1 }),
            "card_exp: 'MM'",
            EvaluationError::NoExpiry("card_exp"),
        ),
        (
            json!("4242424242"),
            "alias_card: true, true",
            EvaluationError::TooShort("alias_card"),
        ),
        (
            json!("many"),
            "to_number",
            EvaluationError::NotNumber("to_number"),
        ),
        (
            json!(true),
            "to_number",
            EvaluationError::NotNumber("to_number"),
        ),
    ]);
}

#[test]
fn section_4_encoding_errors() {
    check_errors(&[
        (
            json!("yes"),
            "to_boolean",
            EvaluationError::NotBoolean("to_boolean"),
        ),
        (
            json!(1),
            "to_boolean",
            EvaluationError::NotBoolean("to_boolean"),
        ),
        (
            json!(null),
            "to_base64",
            EvaluationError::NoInput("to_base64"),
        ),
        (
            json!(null),
            "to_base16",
            EvaluationError::NoInput("to_base16"),
        ),
        (
            json!([1, 2]),
            "to_base16",
            EvaluationError::NotText("to_base16"),
        ),
        (
            json!("1"),
            "hmac: 'md5', 'k' | to_base16",
            EvaluationError::BadArgument("hmac"),
        ),
        (
            json!("1"),
            "hmac: 'sha-1', nil | to_base16",
            EvaluationError::BadArgument("hmac"),
        ),
        (
            json!(null),
            "hmac: 'sha-1', 'k' | to_base16",
            EvaluationError::NoInput("hmac"),
        ),
        (
            json!("1"),
            "pad_left: 9999999, '0'",
            EvaluationError::TooLarge,
        ),
        (
            json!("1"),
            "pad_left: 2, 'ab'",
            EvaluationError::BadArgument("pad_left"),
        ),
    ]);
}
