//! The members of a JSON object, in order, each value kept as the text it came in.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// An object that is looked into without losing number text or member order.
pub(super) struct Members<'a>(pub Vec<(String, Member<'a>)>);

pub(super) enum Member<'a> {
    AsSent(&'a RawValue),
    Number(u16),
}

impl<'a> Members<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Member<'a>> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, member)| member)
    }

    pub(super) fn set(&mut self, name: &str, value: Member<'a>) {
        if let Some((_, member)) = self.0.iter_mut().find(|(key, _)| key == name) {
            *member = value;
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((key, Member::AsSent(value)));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, member) in &self.0 {
            match member {
                Member::AsSent(raw) => map.serialize_entry(key, raw)?,
                Member::Number(number) => map.serialize_entry(key, number)?,
            }
        }
        map.end()
    }
}
