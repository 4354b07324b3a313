//! Tests of valid and invalid catalog files.

use serde_json::{Value, json};

use super::*;

fn valid_document() -> Value {
    json!({
        "id": "shop1-card",
        "display_name": "Shop",
        "method": "card",
        "fields": [
            {"key": "api_key", "display_name": "API key", "required": true, "format": "text",
             "secret": true},
            {"key": "notes2", "display_name": "Notes", "required": false, "format": "multiline",
             "secret": false}
        ],
        "supported_currencies": ["ANG", "EUR", "VES"],
        "supported_countries": ["AX", "DE"],
        "supported_features": {
            "three_d_secure_pass_through": true, "delayed_capture": true, "partial_capture": true,
            "partial_refunds": true, "refunds": true, "zero_auth": false, "void": true
        }
    })
}

fn violations(file: &str, document: &Value) -> Vec<String> {
    let read = read(file, &document.to_string());
    let violations = read.err().unwrap_or_default();
    violations.iter().map(Violation::to_string).collect()
}

#[test]
fn a_valid_document_is_parsed() {
    assert_eq!(violations("shop1-card.json", &valid_document()), [""; 0]);
}

/// A JSON pointer, its new value, and the expected violations.
const INVALID_VALUES: &[(&str, &str, &[&str])] = &[
    (
        "/id",
        r#""other-card""#,
        &["id: must be the file's name without .json"],
    ),
    (
        "/display_name",
        r#"" ""#,
        &["display_name: must not be empty"],
    ),
    (
        "/display_name",
        "7",
        &["display_name: invalid type: integer `7`, expected a string"],
    ),
    (
        "/method",
        r#""bank""#,
        &["method: unknown variant `bank`, expected `card`"],
    ),
    (
        "/fields/0/key",
        r#""Api""#,
        &["fields[0].key: must match [a-z][a-z0-9_]*"],
    ),
    (
        "/fields/0/key",
        r#""2nd""#,
        &["fields[0].key: must match [a-z][a-z0-9_]*"],
    ),
    (
        "/fields/0/key",
        r#""""#,
        &["fields[0].key: must match [a-z][a-z0-9_]*"],
    ),
    (
        "/fields/1/key",
        r#""api_key""#,
        &["fields[1].key: must not be the key of another field"],
    ),
    (
        "/fields/1/display_name",
        r#""""#,
        &["fields[1].display_name: must not be empty"],
    ),
    (
        "/fields/1/format",
        r#""html""#,
        &["fields[1].format: unknown variant `html`"],
    ),
    (
        "/fields/1/secret",
        r#""no""#,
        &["fields[1].secret: invalid type: string"],
    ),
    (
        "/fields/1/required",
        "null",
        &["fields[1].required: invalid type: null"],
    ),
    (
        "/fields/1/more",
        "1",
        &["fields[1].more: unknown field `more`"],
    ),
    ("/icon_url", "1", &["icon_url: unknown field `icon_url`"]),
    (
        "/supported_currencies",
        "[]",
        &["supported_currencies: must not be empty"],
    ),
    (
        "/supported_currencies/1",
        r#""EUX""#,
        &["supported_currencies[1]: must be a code of the ISO"],
    ),
    (
        "/supported_currencies/2",
        r#""eur""#,
        &["supported_currencies[2]: must be a code of the ISO"],
    ),
    (
        "/supported_currencies/1",
        r#""ANG""#,
        &["supported_currencies[1]: must be sorted"],
    ),
    (
        "/supported_currencies/0",
        r#""USD""#,
        &["supported_currencies[1]: must be sorted, without duplicates"],
    ),
    (
        "/supported_countries",
        "[]",
        &["supported_countries: must not be empty"],
    ),
    (
        "/supported_countries/1",
        r#""XX""#,
        &["supported_countries[1]: must be a code of the ISO"],
    ),
    (
        "/supported_countries/1",
        r#""DEU""#,
        &["supported_countries[1]: must be a code of the ISO"],
    ),
    (
        "/supported_countries/1",
        r#""AX""#,
        &["supported_countries[1]: must be sorted"],
    ),
    (
        "/supported_features/voidAllowed",
        "true",
        &["supported_features.voidAllowed: unknown field `voidAllowed`"],
    ),
    (
        "/supported_features/void",
        "1",
        &["supported_features.void: invalid type: integer"],
    ),
    (
        "",
        r#"{"id": "shop1-card"}"#,
        &[".: missing field `display_name`"],
    ),
];

#[test]
fn violations_name_the_file_and_the_attribute() {
    for (pointer, value, expected) in INVALID_VALUES {
        let mut document = valid_document();
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        let new: Value = serde_json::from_str(value).unwrap();
        match (pointer.is_empty(), document.pointer_mut(parent).unwrap()) {
            (true, document) => *document = new,
            (_, Value::Array(items)) => items[name.parse::<usize>().unwrap()] = new,
            (_, parent) => parent[name] = new,
        }

        let messages = violations("shop1-card.json", &document);

        assert_eq!(
            messages.len(),
            expected.len(),
            "{pointer} {value}: {messages:?}"
        );
        for (message, expected) in messages.iter().zip(*expected) {
            let expected = format!("formulas/shop1-card.json: {expected}");
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}

#[test]
fn all_attributes_are_required() {
    let valid = valid_document();
    for parent in ["", "/fields/0", "/supported_features"] {
        for name in valid.pointer(parent).unwrap().as_object().unwrap().keys() {
            let mut document = valid.clone();
            let members = document.pointer_mut(parent).unwrap().as_object_mut();
            members.unwrap().remove(name);

            let messages = violations("shop1-card.json", &document);

            assert_eq!(messages.len(), 1, "{parent} {name}");
            assert!(
                messages[0].contains(&format!("missing field `{name}`")),
                "{}",
                messages[0]
            );
        }
    }
}

#[test]
fn an_id_is_a_processor_and_a_method() {
    for id in [
        "Shop-card",
        "-card",
        "shop_1-card",
        "shop-bank",
        "shop",
        "card",
        "shop-1-card",
    ] {
        let mut document = valid_document();
        document["id"] = json!(id);

        let messages = violations(&format!("{id}.json"), &document);

        let rule = "id: must be lower-case letters and digits, then a dash and the method";
        assert_eq!(messages, [format!("formulas/{id}.json: {rule}")]);
    }
}

#[test]
fn a_file_contains_one_document_without_duplicate_attributes() {
    let text = valid_document().to_string();
    for (text, expected) in [
        (format!("{text}{text}"), ".: trailing characters"),
        (
            text.replacen('{', r#"{"id": "shop1-card","#, 1),
            "duplicate field `id`",
        ),
        (String::new(), ".: EOF while parsing"),
    ] {
        let violations = read("shop1-card.json", &text).unwrap_err();
        assert!(
            violations[0].to_string().contains(expected),
            "{}",
            violations[0]
        );
    }
}
