//! The members of a JSON object in their original order, with values as raw text.

use std::fmt;
use std::ops::RangeInclusive;

use cloakroom_core::access::TenantKind;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::FieldError;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::digits::{DigitRule, are_digits};

/// A JSON object that preserves number text and member order.
///
/// Names are unique: bodies with duplicate names are rejected before.
pub(super) struct Members<'a>(Vec<(String, Member<'a>)>);

pub(super) enum Member<'a> {
    AsSent(&'a RawValue),
    Number(u16),
    Text(&'a str),
}

impl<'a> Members<'a> {
    pub(super) fn parse(data: &'a RawValue) -> Option<Self> {
        serde_json::from_str(data.get()).ok()
    }

    /// Serializes the object. The result is never longer than the input, so the buffer is never reallocated, which
    /// would leave an unzeroized copy in memory.
    pub(super) fn to_json(&self, sent_bytes: usize) -> Result<Sensitive<Vec<u8>>, Vec<FieldError>> {
        let mut json = Sensitive::new(Vec::with_capacity(sent_bytes));
        serde_json::to_writer(json.expose_mut(), self)
            .map_err(|_| vec![FieldError::new("data", "must be expressible as JSON")])?;
        Ok(json)
    }

    /// Validates a required member that is a string of digits.
    pub(super) fn check(
        &self,
        name: &str,
        digits: &DigitRule,
        tenant_kind: TenantKind,
    ) -> Result<(), FieldError> {
        match self.get(name).and_then(Member::text) {
            Some(text) if (digits.accepts)(text.expose(), tenant_kind) => Ok(()),
            Some(_) => Err(digits.error(format!("data.{name}"))),
            None => Err(FieldError::new(format!("data.{name}"), digits.rule)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Member<'a>> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, member)| member)
    }

    /// The members that were not replaced, with their raw values.
    pub(super) fn as_sent(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().filter_map(|(name, member)| match member {
            Member::AsSent(raw) => Some((name.as_str(), *raw)),
            Member::Number(_) | Member::Text(_) => None,
        })
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
            Self::Number(_) | Self::Text(_) => None,
        }
    }
}

/// Stored data with its security code as the last member, to be revealed. Only objects have codes.
pub fn with_security_code(data: &str, code: &str) -> Result<Box<RawValue>, serde_json::Error> {
    let mut members: Members<'_> = serde_json::from_str(data)?;
    members.0.push(("cvc".to_owned(), Member::Text(code)));
    to_raw_value(&members)
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
                Member::Text(text) => map.serialize_entry(key, text)?,
            }
        }
        map.end()
    }
}
