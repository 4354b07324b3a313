//! Metadata: plaintext, searchable strings without card numbers or sensitive authentication data.

use cloakroom_core::access::TenantSettings;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::{
    NO_AUTHENTICATION_DATA, contains_card_number, holds_track_data, named_authentication_data,
};
use serde_json::{Map, Value};

const ENTRIES_MAX: usize = 50;
const KEY_CHARS_MAX: usize = 200;
const VALUE_CHARS_MAX: usize = 1_000;

/// Validates metadata and drops null entries; `None` if nothing is left.
pub fn validate(
    given: Map<String, Value>,
    settings: &TenantSettings,
) -> Result<Option<String>, Vec<FieldError>> {
    let mut broken = Vec::new();
    let mut entries = Map::new();
    for (key, value) in given {
        if let Some(rule) = broken_rule(&key, &value, settings) {
            // The response must not repeat a key that may contain sensitive data.
            let is_long = key.chars().count() > KEY_CHARS_MAX;
            let path = match is_long || contains_card_number(&key) || holds_track_data(&key) {
                true => "metadata".to_owned(),
                false => format!("metadata.{key}"),
            };
            broken.push(FieldError::new(path, rule));
        } else if !value.is_null() {
            entries.insert(key, value);
        }
    }
    if entries.len() > ENTRIES_MAX {
        broken.push(FieldError::new(
            "metadata",
            format!("must have at most {ENTRIES_MAX} entries"),
        ));
    }
    match (broken.is_empty(), entries.is_empty()) {
        (false, _) => Err(broken),
        (true, true) => Ok(None),
        (true, false) => Ok(Some(Value::Object(entries).to_string())),
    }
}

fn broken_rule(key: &str, value: &Value, settings: &TenantSettings) -> Option<String> {
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
    let may_hold_number = settings.card_numbers_in_metadata;
    if (!may_hold_number && contains_card_number(text)) || contains_card_number(key) {
        return Some("must not contain a card number: metadata is stored in plaintext".to_owned());
    }
    let is_named = named_authentication_data(key, value).is_some();
    if is_named || holds_track_data(text) || holds_track_data(key) {
        return Some(NO_AUTHENTICATION_DATA.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_validated() {
        let many: Map<String, Value> = (0..51).map(|n| (n.to_string(), json!("v"))).collect();
        let cases: [(Value, Result<Option<&str>, &str>); 16] = [
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
            (json!({"a": "card 5066991111111118"}), Err("metadata.a")),
            (json!({"cvc": "737"}), Err("metadata.cvc")),
            (json!({"Card-CVV": "x"}), Err("metadata.Card-CVV")),
            (json!({"track_2": "x"}), Err("metadata.track_2")),
            (json!({"pin": "1234"}), Err("metadata.pin")),
            (json!({"a": ";424242424242=3012?"}), Err("metadata.a")),
            (json!({"cvc": null}), Ok(None)),
            (
                json!({"cid": "customer", "pincode": "560001"}),
                Ok(Some(r#"{"cid":"customer","pincode":"560001"}"#)),
            ),
            (Value::Object(many), Err("metadata")),
        ];
        for (given, expected) in cases {
            let Value::Object(map) = given.clone() else {
                panic!("not an object")
            };
            let validated =
                validate(map, &TenantSettings::default()).map_err(|broken| broken[0].path.clone());
            let expected = expected
                .map(|o| o.map(str::to_owned))
                .map_err(str::to_owned);
            assert_eq!(validated, expected, "{given}");
        }
    }

    #[test]
    fn errors_never_contain_a_key_with_a_card_number() {
        let Value::Object(map) = json!({"4242424242424242": "v"}) else {
            panic!("not an object")
        };
        assert_eq!(
            validate(map, &TenantSettings::default()).unwrap_err()[0].path,
            "metadata"
        );
    }
}
