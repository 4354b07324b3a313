//! Deserialization of JSON objects only.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Deserializes `T` from a JSON object only. Derived implementations also accept an array of their fields in order,
/// which the API does not.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }

        deserializer.deserialize_map(Read(PhantomData))
    }
}

/// Deserializes an optional field from a JSON object or null, for `#[serde(deserialize_with)]`.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let read: Option<Object<T>> = Option::deserialize(deserializer)?;
    Ok(read.map(|Object(value)| value))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::parse_json;
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        data: Option<&'a RawValue>,
        inner: Option<Object<Inner>>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        name: Option<String>,
    }

    #[test]
    fn objects_are_deserialized_and_borrow_their_text() {
        let text = r#"{"data": [1.50], "inner": {"name": "a"}, "unknown": 1}"#;

        let Object(outer) = parse_json::<Object<Outer<'_>>>(text).unwrap();

        assert_eq!(outer.data.unwrap().get(), "[1.50]");
        assert_eq!(outer.inner.unwrap().0.name.as_deref(), Some("a"));
    }

    #[test]
    fn other_values_are_rejected_with_their_path() {
        let cases = [
            ("[null, null]", "body"),
            ("[]", "body"),
            ("null", "body"),
            (r#""text""#, "body"),
            (r#"{"inner": [null]}"#, "inner"),
            (r#"{"inner": []}"#, "inner"),
            (r#"{"inner": "text"}"#, "inner"),
        ];
        for (text, path) in cases {
            let error = parse_json::<Object<Outer<'_>>>(text).unwrap_err();
            assert_eq!(
                (error.path.as_str(), error.rule.as_str()),
                (path, "must be an object"),
                "{text}"
            );
        }
        let error = parse_json::<Object<Outer<'_>>>(r#"{"inner": {"name": 7}}"#).unwrap_err();
        assert_eq!(error.path, "inner.name");
    }
}
