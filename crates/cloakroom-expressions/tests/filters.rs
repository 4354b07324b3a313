//! Every filter against its documented examples.

use cloakroom_expressions::{EvaluationError, Template};
use serde_json::{Value, json};

const V1: &str = "3622-7206-2716-5567";
const V3: &str = "36227206271667";

#[expect(clippy::unwrap_used, reason = "every filter in these tables parses")]
fn filtered(data: Value, filter: &str) -> Result<Value, EvaluationError> {
    let template = Template::parse(&format!("{{{{ data | {filter} }}}}")).unwrap();
    template.evaluate(&data)
}

#[test]
fn filters_yield_their_documented_results() {
    let cases = [
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
    ];
    for (data, filter, expected) in cases {
        assert_eq!(
            filtered(data.clone(), filter),
            Ok(expected),
            "{data} | {filter}"
        );
    }
}

#[test]
fn filters_keep_to_their_rules_at_the_edges() {
    let object = json!({ "b": 1, "a": [true, null, "x"] });
    let cases = [
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
        (object, "stringify | last4", json!("x\"]}")),
    ];
    for (data, filter, expected) in cases {
        assert_eq!(
            filtered(data.clone(), filter),
            Ok(expected),
            "{data} | {filter}"
        );
    }
}

#[test]
fn filters_refuse_what_they_cannot_work_on() {
    let cases = [
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
    ];
    for (data, filter, expected) in cases {
        assert_eq!(
            filtered(data.clone(), filter),
            Err(expected),
            "{data} | {filter}"
        );
    }
}
