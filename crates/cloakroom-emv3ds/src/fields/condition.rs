//! Conditions under which a field is required, as data.

use serde_json::{Map, Value};

use crate::codes::{AuthenticationCategory, DeviceChannel, TransStatus};
use crate::version::Version;

/// Input of conditions: the message, and what is known about its transaction.
pub(crate) struct Context<'a> {
    pub(crate) version: Version,
    pub(crate) channel: Option<DeviceChannel>,
    pub(crate) category: Option<AuthenticationCategory>,
    /// `transStatus` of the preceding `ARes`.
    pub(crate) ares_status: Option<TransStatus>,
    pub(crate) message: &'a Map<String, Value>,
}

impl<'a> Context<'a> {
    /// The context as far as the message contains it. An `ARes` has no channel and no category.
    pub(crate) fn of(message: &'a Map<String, Value>, version: Version) -> Self {
        let text = |name| message.get(name).and_then(Value::as_str);
        Self {
            version,
            channel: text("deviceChannel").and_then(DeviceChannel::from_code),
            category: text("messageCategory").and_then(AuthenticationCategory::from_code),
            ares_status: None,
            message,
        }
    }
}

/// A condition with a human-readable name, such as "for payments".
#[derive(Debug)]
pub struct Rule {
    pub name: &'static str,
    pub condition: Condition,
}

/// There is no negation: an unknown condition is false, so missing context never adds required fields.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    Category(AuthenticationCategory),
    Channel(DeviceChannel),
    /// The preceding `ARes` had this status.
    AresStatus(TransStatus),
    Present(&'static str),
    /// A field is true.
    True(&'static str),
    /// A field, or an element of a list field, has one of these values.
    Is(&'static str, &'static [&'static str]),
    All(&'static [Self]),
    Any(&'static [Self]),
}

impl Condition {
    pub(crate) fn holds(&self, context: &Context<'_>) -> bool {
        match self {
            Self::Category(category) => context.category == Some(*category),
            Self::Channel(channel) => context.channel == Some(*channel),
            Self::AresStatus(status) => context.ares_status == Some(*status),
            Self::Present(name) => context.message.contains_key(*name),
            Self::True(name) => context.message.get(*name) == Some(&Value::Bool(true)),
            Self::Is(name, values) => context
                .message
                .get(*name)
                .is_some_and(|value| is_one_of(value, values)),
            Self::All(all) => all.iter().all(|condition| condition.holds(context)),
            Self::Any(any) => any.iter().any(|condition| condition.holds(context)),
        }
    }
}

fn is_one_of(value: &Value, values: &[&str]) -> bool {
    match value {
        Value::String(text) => values.contains(&text.as_str()),
        Value::Array(elements) => elements.iter().any(|element| is_one_of(element, values)),
        _ => false,
    }
}
