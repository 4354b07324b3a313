//! Parses a JSON object, limits its depth and reports duplicate keys.
//!
//! `serde_json` silently uses the last of duplicate keys. Two parsers that choose different ones
//! can be exploited to bypass validation, so objects are parsed key by key here.

use std::collections::HashSet;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Messages are three levels deep; extension data may be deeper.
const DEPTH_MAX: usize = 16;

/// Keys with this prefix are special to `serde_json` and are rejected in messages.
const RESERVED_PREFIX: &str = "$serde_json::private::";

/// An object, and the paths of its duplicate keys.
pub(crate) struct ParsedObject {
    pub(crate) object: Map<String, Value>,
    pub(crate) duplicates: Vec<String>,
}

/// Not JSON, not an object, too deep, or with a reserved key.
pub(crate) struct InvalidObject;

pub(crate) fn parse_object(text: &[u8]) -> Result<ParsedObject, InvalidObject> {
    let raw: &RawValue = serde_json::from_slice(text).map_err(|_| InvalidObject)?;
    let mut duplicates = Vec::new();
    match parse_value(raw.get(), "", DEPTH_MAX, &mut duplicates)? {
        Value::Object(object) => Ok(ParsedObject { object, duplicates }),
        _ => Err(InvalidObject),
    }
}

fn parse_value(
    text: &str,
    path: &str,
    depth: usize,
    duplicates: &mut Vec<String>,
) -> Result<Value, InvalidObject> {
    let deeper = || depth.checked_sub(1).ok_or(InvalidObject);
    match text.as_bytes().first() {
        Some(b'{') => {
            let depth = deeper()?;
            let mut object = Map::new();
            for (key, raw) in entries(text)? {
                if key.starts_with(RESERVED_PREFIX) {
                    return Err(InvalidObject);
                }
                let path = join(path, &key);
                let inner = parse_value(raw.get(), &path, depth, duplicates)?;
                if object.insert(key, inner).is_some() {
                    duplicates.push(path);
                }
            }
            Ok(Value::Object(object))
        }
        Some(b'[') => {
            let depth = deeper()?;
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| InvalidObject)?;
            let read = |raw: &RawValue| parse_value(raw.get(), path, depth, duplicates);
            elements.into_iter().map(read).collect()
        }
        _ => serde_json::from_str(text).map_err(|_| InvalidObject),
    }
}

/// Joins path and key. Elements of a list have the path of the list.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn entries(text: &str) -> Result<Vec<(String, &RawValue)>, InvalidObject> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer
        .deserialize_map(Entries)
        .map_err(|_| InvalidObject)
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Removes duplicates; keeps the order of first appearance.
pub(crate) fn unique(paths: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    paths
        .into_iter()
        .filter(|path| seen.insert(path.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_keys_are_found_at_any_depth() {
        let parsed = parse_object(br#"{"a":1,"b":{"c":[{"d":1,"d":2}]},"\u0061":"x"}"#);
        let parsed = parsed.ok().unwrap();
        assert_eq!(parsed.duplicates, ["b.c.d", "a"]);
        let parsed = parse_object(br#" {"a":{"x":1},"b":{"x":1},"c":[{"x":1.50},{"x":null}]} "#);
        let parsed = parsed.ok().unwrap();
        assert!(parsed.duplicates.is_empty());
        assert_eq!(
            Value::Object(parsed.object).to_string(),
            r#"{"a":{"x":1},"b":{"x":1},"c":[{"x":1.50},{"x":null}]}"#
        );
    }

    #[test]
    fn only_a_single_shallow_object_is_accepted() {
        for text in [
            &b""[..],
            b"[]",
            b"1",
            b"null",
            b"{",
            b"{}{}",
            b"{} x",
            br#"{"a":}"#,
            br#"{"a":"\ud800"}"#,
            b"{\"a\":\"\xff\"}",
            br#"{"a":01}"#,
            br#"{"a":{"$serde_json::private::Number":"1"}}"#,
            br#"{"a":[{"$serde_json::private::RawValue":"{}"}]}"#,
        ] {
            assert!(parse_object(text).is_err(), "{text:?}");
        }
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(parse_object(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert!(parse_object(nested(DEPTH_MAX + 1).as_bytes()).is_err());
        assert!(parse_object(nested(1_000).as_bytes()).is_err());
        let list = format!("{{\"a\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(parse_object(list.as_bytes()).is_err());
    }
}
