//! The members of a JSON object, in order, each value kept as the text it came in.

use std::fmt;
use std::ops::RangeInclusive;

use cloakroom_crypto::Sensitive;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::digits::{Digits, are_digits};
use crate::access::TenantKind;
use crate::api::Broken;

/// An object that is looked into without losing number text or member order.
///
/// Names are unique in it: bodies that repeat one are refused before.
pub(super) struct Members<'a>(Vec<(String, Member<'a>)>);

pub(super) enum Member<'a> {
    AsSent(&'a RawValue),
    Number(u16),
}

impl<'a> Members<'a> {
    pub(super) fn parse(data: &'a RawValue) -> Option<Self> {
        serde_json::from_str(data.get()).ok()
    }

    /// The object as text. None of it is longer than it came, so the text is never moved while it
    /// is written, which would leave a copy behind.
    pub(super) fn to_json(&self, sent_bytes: usize) -> Result<Sensitive<Vec<u8>>, Vec<Broken>> {
        let mut json = Sensitive::new(Vec::with_capacity(sent_bytes));
        serde_json::to_writer(json.expose_mut(), self)
            .map_err(|_| vec![Broken::new("data", "must be expressible as JSON")])?;
        Ok(json)
    }

    /// Checks a member that must be there and be a string of digits.
    pub(super) fn check(
        &self,
        name: &str,
        digits: &Digits,
        tenant_kind: TenantKind,
    ) -> Result<(), Broken> {
        match self.get(name).and_then(Member::text) {
            Some(text) if (digits.is_met)(text.expose(), tenant_kind) => Ok(()),
            Some(_) => Err(digits.refuse(format!("data.{name}"))),
            None => Err(Broken::new(format!("data.{name}"), digits.rule)),
        }
    }

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

impl Member<'_> {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::AsSent(raw) if raw.get() == "null")
    }

    /// Digits that were sent as a string or as a number.
    pub(super) fn digits(&self, lengths: RangeInclusive<usize>) -> Option<Sensitive<String>> {
        let Self::AsSent(raw) = self else {
            return None;
        };
        let digits = self
            .text()
            .unwrap_or_else(|| Sensitive::new(raw.get().to_owned()));
        are_digits(digits.expose(), lengths).then_some(digits)
    }

    fn text(&self) -> Option<Sensitive<String>> {
        match self {
            Self::AsSent(raw) => text(raw),
            Self::Number(_) => None,
        }
    }
}

/// The content of a JSON string.
pub(super) fn text(raw: &RawValue) -> Option<Sensitive<String>> {
    serde_json::from_str(raw.get()).ok().map(Sensitive::new)
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
