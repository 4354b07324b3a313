//! When a field must be there, as data.

use serde_json::{Map, Value};

use crate::codes::{AuthenticationCategory, DeviceChannel, TransStatus};
use crate::version::Version;

/// What a condition can ask about: the message, and what is known of the transaction besides.
pub(crate) struct Facts<'a> {
    pub(crate) version: Version,
    pub(crate) channel: Option<DeviceChannel>,
    pub(crate) category: Option<AuthenticationCategory>,
    /// What the `ARes` before said.
    pub(crate) answered: Option<TransStatus>,
    pub(crate) message: &'a Map<String, Value>,
}

impl<'a> Facts<'a> {
    /// What a message tells by itself. Answers do not tell channel and category.
    pub(crate) fn of(message: &'a Map<String, Value>, version: Version) -> Self {
        let text = |name| message.get(name).and_then(Value::as_str);
        Self {
            version,
            channel: text("deviceChannel").and_then(DeviceChannel::from_code),
            category: text("messageCategory").and_then(AuthenticationCategory::from_code),
            answered: None,
            message,
        }
    }
}

/// A condition with a name for people: "for payments".
#[derive(Debug)]
pub struct Rule {
    pub name: &'static str,
    pub condition: Condition,
}

/// There is no "not": what is unknown does not hold, so less knowledge never asks for more fields.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    Category(AuthenticationCategory),
    Channel(DeviceChannel),
    /// The answer before had this status.
    Answered(TransStatus),
    Present(&'static str),
    /// A field is true.
    True(&'static str),
    /// A field, or an element of a list, has one of these values.
    Is(&'static str, &'static [&'static str]),
    All(&'static [Self]),
    Any(&'static [Self]),
}

impl Condition {
    pub(crate) fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Category(category) => facts.category == Some(*category),
            Self::Channel(channel) => facts.channel == Some(*channel),
            Self::Answered(status) => facts.answered == Some(*status),
            Self::Present(name) => facts.message.contains_key(*name),
            Self::True(name) => facts.message.get(*name) == Some(&Value::Bool(true)),
            Self::Is(name, values) => facts
                .message
                .get(*name)
                .is_some_and(|value| is(value, values)),
            Self::All(all) => all.iter().all(|condition| condition.holds(facts)),
            Self::Any(any) => any.iter().any(|condition| condition.holds(facts)),
        }
    }
}

fn is(value: &Value, values: &[&str]) -> bool {
    match value {
        Value::String(text) => values.contains(&text.as_str()),
        Value::Array(elements) => elements.iter().any(|element| is(element, values)),
        _ => false,
    }
}
