//! One JSON object, with a bound on its depth and with the keys that it holds twice.
//!
//! A map keeps the last of two equal keys and says nothing, but two readers that disagree about
//! which one counts are a way to slip something past one of them. So objects are taken apart here.

use std::collections::HashSet;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Messages are three levels deep; what extensions hold may be somewhat more.
const DEPTH_MAX: usize = 16;

/// Our JSON library gives a meaning of its own to keys that begin like this, so nobody else may.
const RESERVED: &str = "$serde_json::private::";

/// An object, and the paths of keys that are in one object twice.
pub(crate) struct Parsed {
    pub(crate) object: Map<String, Value>,
    pub(crate) duplicates: Vec<String>,
}

/// Not JSON, not an object, too deep, or with a reserved key.
pub(crate) struct NotAnObject;

pub(crate) fn object(text: &[u8]) -> Result<Parsed, NotAnObject> {
    let raw: &RawValue = serde_json::from_slice(text).map_err(|_| NotAnObject)?;
    let mut duplicates = Vec::new();
    match value(raw.get(), "", DEPTH_MAX, &mut duplicates)? {
        Value::Object(object) => Ok(Parsed { object, duplicates }),
        _ => Err(NotAnObject),
    }
}

fn value(
    text: &str,
    path: &str,
    depth: usize,
    duplicates: &mut Vec<String>,
) -> Result<Value, NotAnObject> {
    let deeper = || depth.checked_sub(1).ok_or(NotAnObject);
    match text.as_bytes().first() {
        Some(b'{') => {
            let depth = deeper()?;
            let mut object = Map::new();
            for (key, raw) in entries(text)? {
                if key.starts_with(RESERVED) {
                    return Err(NotAnObject);
                }
                let path = join(path, &key);
                let inner = value(raw.get(), &path, depth, duplicates)?;
                if object.insert(key, inner).is_some() {
                    duplicates.push(path);
                }
            }
            Ok(Value::Object(object))
        }
        Some(b'[') => {
            let depth = deeper()?;
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| NotAnObject)?;
            let read = |raw: &RawValue| value(raw.get(), path, depth, duplicates);
            elements.into_iter().map(read).collect()
        }
        _ => serde_json::from_str(text).map_err(|_| NotAnObject),
    }
}

/// Elements of lists have the path of their list.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn entries(text: &str) -> Result<Vec<(String, &RawValue)>, NotAnObject> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer
        .deserialize_map(Entries)
        .map_err(|_| NotAnObject)
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

/// Each path once, in the order of their first appearance.
pub(crate) fn once(paths: Vec<String>) -> Vec<String> {
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
    fn keys_that_are_there_twice_are_found_at_any_depth() {
        let parsed = object(br#"{"a":1,"b":{"c":[{"d":1,"d":2}]},"\u0061":"x"}"#);
        let parsed = parsed.ok().unwrap();
        assert_eq!(parsed.duplicates, ["b.c.d", "a"]);
        let parsed = object(br#" {"a":{"x":1},"b":{"x":1},"c":[{"x":1.50},{"x":null}]} "#);
        let parsed = parsed.ok().unwrap();
        assert!(parsed.duplicates.is_empty());
        assert_eq!(
            Value::Object(parsed.object).to_string(),
            r#"{"a":{"x":1},"b":{"x":1},"c":[{"x":1.50},{"x":null}]}"#
        );
    }

    #[test]
    fn only_one_shallow_object_is_read() {
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
            assert!(object(text).is_err(), "{text:?}");
        }
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(object(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert!(object(nested(DEPTH_MAX + 1).as_bytes()).is_err());
        assert!(object(nested(1_000).as_bytes()).is_err());
        let list = format!("{{\"a\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(object(list.as_bytes()).is_err());
    }
}
