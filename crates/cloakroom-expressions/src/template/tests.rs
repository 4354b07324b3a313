//! Tests of parsing, errors and limits.

use serde_json::json;

use super::*;
use crate::TEXT_CHARACTERS_MAX;

fn evaluate(text: &str, data: Value) -> Result<Value, EvaluationError> {
    let template = Template::parse(Context::Mask, text).unwrap();
    template.evaluate(&Scope::of(&[("data", &data)]))
}

#[test]
fn a_single_output_preserves_its_type_and_other_templates_are_text() {
    let data = json!({ "n": 12, "d": 1.5, "t": true, "o": { "a": [1, null] }, "s": "x" });
    let cases = [
        ("{{ data.n }}", json!(12)),
        ("{{data.n}}", json!(12)),
        ("{{- data.n -}}", json!(12)),
        ("{{ data.d }}", json!(1.5)),
        ("{{ data.t }}", json!(true)),
        ("{{ data.o }}", json!({ "a": [1, null] })),
        ("{{ data.missing }}", json!(null)),
        ("{{ data }}", data.clone()),
        ("{{ 'text' }}", json!("text")),
        ("{{ 7 }}", json!(7)),
        (" {{ data.n }}", json!(" 12")),
        ("{{ data.n }} ", json!("12 ")),
        (" {{- data.n -}} ", json!("12")),
        ("a {{- data.n }} b", json!("a12 b")),
        ("a {{ data.n -}} b", json!("a 12b")),
        ("{{ data.n }}{{ data.s }}", json!("12x")),
        ("{{ data.n -}} {{ data.s }}", json!("12x")),
        ("<{{ data.missing }}>", json!("<>")),
        ("{{ data.o }}!", json!("{\"a\":[1,null]}!")),
        ("{{ data.t }}/{{ data.d }}", json!("true/1.5")),
        ("plain }} text {", json!("plain }} text {")),
        ("", json!("")),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluate(text, data.clone()), Ok(expected), "{text}");
    }
}

#[test]
fn trailing_text_that_is_no_filter_yields_null() {
    let data = json!({ "number": "4242424242424242" });
    let cases = [
        ("{{ data.number, reveal_last: 4 }}", json!(null)),
        ("{{ data.number reveal_last: 4 }}", json!(null)),
        ("{{ data.number, reveal_last: 4 | last4 }}", json!(null)),
        ("{{ data.number. }}", json!(null)),
        ("{{ data.number[ }}", json!(null)),
        ("{{ data.number don't }}", json!(null)),
        ("card {{ data.number, last4 }}", json!("card ")),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluate(text, data.clone()), Ok(expected), "{text}");
    }
}

#[test]
fn parse_errors_name_the_cause() {
    let cases = [
        ("{{ data | shout }}", "unknown filter `shout`"),
        ("{{ data | last4: 4 }}", "filter `last4` takes no arguments"),
        (
            "{{ data | reveal_last }}",
            "filter `reveal_last` takes a count and optionally a mask character",
        ),
        (
            "{{ data | reveal_last: 1, 'X', 3 }}",
            "filter `reveal_last` takes a count and optionally a mask character",
        ),
        (
            "{{ data | reveal_last: }}",
            "filter `reveal_last` has invalid arguments",
        ),
        (
            "{{ data | last4 junk }}",
            "filter `last4` has invalid arguments",
        ),
        (
            "{{ data | json_stringify | last4 }}",
            "filter `json_stringify` must be the last filter",
        ),
        ("{{ data | '$.data' }}", "filter name is missing after `|`"),
        ("{{ data | }}", "filter name is missing after `|`"),
        ("{{ }}", "expression must start with a value"),
        ("{{ | last4 }}", "expression must start with a value"),
        ("{{ 'open }}", "expression must start with a value"),
        ("a {{ data", "expression has `{{` without `}}`"),
    ];
    for (text, message) in cases {
        let error = Template::parse(Context::Mask, text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn tag_parse_errors_name_the_cause() {
    let cases = [
        ("{% if data %}", "tag `if` has no end tag"),
        ("{% if %}{% endif %}", "tag `if` has invalid syntax"),
        (
            "{% if data %}{% elsif %}{% endif %}",
            "tag `elsif` has invalid syntax",
        ),
        (
            "{% if data %}{% endfor %}",
            "tag `endfor` is not allowed here",
        ),
        ("{{ data }}{% endif %}", "tag `endif` is not allowed here"),
        ("{% break %}", "tag `break` is not allowed here"),
        ("{%- for x of data %}", "tag `for` has invalid syntax"),
        ("{% assign = 1 %}", "tag `assign` has invalid syntax"),
        ("{% render 'card' %}", "tag `render` is not supported"),
        ("{% include 'card' %}", "tag `include` is not supported"),
        ("{% # note %}", "tag `` is not supported"),
        ("{% if data", "tag has `{%` without `%}`"),
        (
            "{{ data | hmac: 'sha-256', 'k' }}",
            "filter `hmac` must be followed by `to_base64` or `to_base16`",
        ),
        (
            "{{ data | hmac: 'sha-256', 'k' | upcase }}",
            "filter `hmac` must be followed by `to_base64` or `to_base16`",
        ),
        (
            "{{ data | json: 'data' }}",
            "filter `json` has an invalid JSON path",
        ),
    ];
    for (text, message) in cases {
        let error = Template::parse(Context::Mask, text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn errors_truncate_long_names() {
    let text = format!("{{{{ data | {} }}}}", "a".repeat(100));
    let error = Template::parse(Context::Mask, &text).unwrap_err();
    assert_eq!(error, ParseError::UnknownFilter("a".repeat(40)));
}

#[test]
fn template_length_is_limited_in_characters() {
    assert!(Template::parse(Context::Mask, &"ä".repeat(TEXT_CHARACTERS_MAX)).is_ok());
    let error = Template::parse(Context::Mask, &"a".repeat(TEXT_CHARACTERS_MAX + 1)).unwrap_err();
    assert_eq!(error, ParseError::TooLong(TEXT_CHARACTERS_MAX));
}

#[test]
fn result_size_is_limited() {
    let fits = json!("a".repeat(OUTPUT_BYTES_MAX));
    let exceeds = json!("a".repeat(OUTPUT_BYTES_MAX + 1));
    let many = json!(vec![0; OUTPUT_BYTES_MAX]);

    assert_eq!(evaluate("{{ data }}", fits.clone()), Ok(fits.clone()));
    for (text, data) in [
        ("{{ data }}", exceeds),
        ("{{ data }}!", fits.clone()),
        ("{{ data }}{{ data }}", fits),
        ("{{ data }}", many.clone()),
        ("{{ data | stringify }}", many),
    ] {
        assert_eq!(
            evaluate(text, data),
            Err(EvaluationError::TooLarge),
            "{text}"
        );
    }
}
