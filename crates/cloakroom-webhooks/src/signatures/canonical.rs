//! The canonical form of JSON that receivers verify: keys sorted by UTF-16 code units, no white space.

use serde_json::Value;

/// Serializes a value as `json-stable-stringify` does in JavaScript.
///
/// Numbers are printed as they are: events contain integers only.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        // Strings are escaped as in JavaScript.
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            text.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_by_utf16_code_units_at_every_level() {
        let cases = [
            (
                json!({"b": 1, "a": {"d": [], "c": null}}),
                r#"{"a":{"c":null,"d":[]},"b":1}"#,
            ),
            (
                json!([{"b": true, "a": "x"}, 2]),
                r#"[{"a":"x","b":true},2]"#,
            ),
            // A surrogate pair sorts before U+FF01, although its code point is larger.
            (
                json!({"\u{ff01}": 1, "\u{1f600}": 2}),
                "{\"\u{1f600}\":2,\"\u{ff01}\":1}",
            ),
            (
                json!({"10": 1, "9": 2, "A": 3, "a": 4}),
                r#"{"10":1,"9":2,"A":3,"a":4}"#,
            ),
            (
                json!("a\"\\\n\u{7f}\u{1}é"),
                "\"a\\\"\\\\\\n\u{7f}\\u0001é\"",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(canonical(&value), expected);
        }
    }
}
