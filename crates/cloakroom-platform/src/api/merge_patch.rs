//! JSON Merge Patch (RFC 7386).

use serde_json::{Map, Value};

/// Applies `patch` to `target`: objects are merged, null removes a member, any other value replaces it. The order of
/// members and the text of numbers are preserved.
pub fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(changes) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            // `remove` would move the last member to this position.
            members.shift_remove(&name);
        } else {
            merge_patch(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(target: &str, patch: &str) -> String {
        let mut target = serde_json::from_str(target).unwrap();
        merge_patch(&mut target, serde_json::from_str(patch).unwrap());
        target.to_string()
    }

    #[test]
    fn examples_of_rfc_7386_hold() {
        let cases = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            (
                r#"{}"#,
                r#"{"a":{"bb":{"ccc":null}}}"#,
                r#"{"a":{"bb":{}}}"#,
            ),
        ];
        for (target, patch, expected) in cases {
            assert_eq!(merged(target, patch), expected, "{target} {patch}");
        }
    }

    #[test]
    fn members_keep_their_order_and_numbers_their_text() {
        let cases = [
            (
                r#"{"a":1,"b":2,"c":3,"d":4}"#,
                r#"{"b":null}"#,
                r#"{"a":1,"c":3,"d":4}"#,
            ),
            (
                r#"{"b":1.0,"a":1.50}"#,
                r#"{"b":2.500}"#,
                r#"{"b":2.500,"a":1.50}"#,
            ),
            (
                r#"{"z":1,"a":{"y":1,"b":2}}"#,
                r#"{"a":{"c":3,"y":null},"n":0}"#,
                r#"{"z":1,"a":{"b":2,"c":3},"n":0}"#,
            ),
            (
                r#"{"n":12345678901234567890123}"#,
                r#"{"m":0.10000000000000000001}"#,
                r#"{"n":12345678901234567890123,"m":0.10000000000000000001}"#,
            ),
        ];
        for (target, patch, expected) in cases {
            assert_eq!(merged(target, patch), expected, "{target} {patch}");
        }
    }
}
