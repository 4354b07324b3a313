//! Metadata: clear, searchable strings beside the data, which must not hold card numbers.

use serde_json::{Map, Value};

use crate::api::Broken;
use crate::card_numbers::holds_card_number;

const ENTRIES_MAX: usize = 50;
const KEY_CHARS_MAX: usize = 200;
const VALUE_CHARS_MAX: usize = 1_000;

/// Checks metadata and drops null entries; `None` when nothing is left.
pub(crate) fn settle(given: Map<String, Value>) -> Result<Option<String>, Vec<Broken>> {
    let mut broken = Vec::new();
    let mut kept = Map::new();
    for (key, value) in given {
        if let Some(rule) = broken_rule(&key, &value) {
            // A key that is itself suspicious is not repeated in the answer.
            let path = match key.chars().count() <= KEY_CHARS_MAX && !holds_card_number(&key) {
                true => format!("metadata.{key}"),
                false => "metadata".to_owned(),
            };
            broken.push(Broken::new(path, rule));
        } else if !value.is_null() {
            kept.insert(key, value);
        }
    }
    if kept.len() > ENTRIES_MAX {
        broken.push(Broken::new(
            "metadata",
            format!("must have at most {ENTRIES_MAX} entries"),
        ));
    }
    match (broken.is_empty(), kept.is_empty()) {
        (false, _) => Err(broken),
        (true, true) => Ok(None),
        (true, false) => Ok(Some(Value::Object(kept).to_string())),
    }
}

fn broken_rule(key: &str, value: &Value) -> Option<String> {
    if key.is_empty() || key.chars().count() > KEY_CHARS_MAX {
        return Some(format!("must have keys of 1 to {KEY_CHARS_MAX} characters"));
    }
    let text = match value {
        Value::Null => "",
        Value::String(text) => text,
        _ => return Some("must be a string".to_owned()),
    };
    if text.chars().count() > VALUE_CHARS_MAX {
        return Some(format!("must be at most {VALUE_CHARS_MAX} characters"));
    }
    if holds_card_number(text) || holds_card_number(key) {
        return Some("must not hold a card number: metadata is kept in clear".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_strings_within_limits_and_without_cards() {
        let many: Map<String, Value> = (0..51).map(|n| (n.to_string(), json!("v"))).collect();
        let cases: [(Value, Result<Option<&str>, &str>); 8] = [
            (json!({}), Ok(None)),
            (json!({"a": null}), Ok(None)),
            (
                json!({"b": "2", "a": "1", "c": null}),
                Ok(Some(r#"{"b":"2","a":"1"}"#)),
            ),
            (json!({"a": 1}), Err("metadata.a")),
            (json!({"": "1"}), Err("metadata.")),
            (json!({"a": "x".repeat(1_001)}), Err("metadata.a")),
            (json!({"a": "card 4242 4242 4242 4242"}), Err("metadata.a")),
            (Value::Object(many), Err("metadata")),
        ];
        for (given, expected) in cases {
            let Value::Object(map) = given.clone() else {
                panic!("not an object")
            };
            let settled = settle(map).map_err(|broken| broken[0].path.clone());
            let expected = expected
                .map(|o| o.map(str::to_owned))
                .map_err(str::to_owned);
            assert_eq!(settled, expected, "{given}");
        }
    }

    #[test]
    fn a_card_number_as_a_key_is_not_repeated() {
        let Value::Object(map) = json!({"4242424242424242": "v"}) else {
            panic!("not an object")
        };
        assert_eq!(settle(map).unwrap_err()[0].path, "metadata");
    }
}
