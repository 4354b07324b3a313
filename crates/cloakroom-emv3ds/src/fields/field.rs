//! A row of a table.

use std::fmt;

use super::condition::{Condition, Facts, Rule};
use super::format::Format;
use crate::codes::DeviceChannel;
use crate::version::Version;

/// On which device channels a field exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels(u8);

impl Channels {
    pub const APP: Self = Self(1);
    pub const BROWSER: Self = Self(2);
    pub const THREE_RI: Self = Self(4);
    /// With a cardholder.
    pub const CUSTOMER: Self = Self(3);
    pub const ALL: Self = Self(7);

    pub const fn contains(self, channel: DeviceChannel) -> bool {
        let one = match channel {
            DeviceChannel::App => Self::APP,
            DeviceChannel::Browser => Self::BROWSER,
            DeviceChannel::ThreeRi => Self::THREE_RI,
        };
        self.0 & one.0 != 0
    }
}

/// When a field must be there.
#[derive(Clone, Copy, Debug)]
pub enum Inclusion {
    Required,
    Optional,
    /// Required under a rule, else optional.
    Conditional(&'static Rule),
}

impl Inclusion {
    pub(crate) fn requires(self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Required => true,
            Self::Optional => false,
            Self::Conditional(rule) => rule.condition.holds(facts),
        }
    }
}

impl fmt::Display for Inclusion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => out.write_str("required"),
            Self::Optional => out.write_str("optional"),
            Self::Conditional(rule) => write!(out, "required {}", rule.name),
        }
    }
}

/// A field, from a version to a version, on some channels.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Names joined by dots. An element of a list has the path of its list.
    pub path: &'static str,
    pub format: Format,
    pub since: Version,
    pub until: Version,
    pub channels: Channels,
    /// Inside an object: given that the object is there.
    pub inclusion: Inclusion,
    /// Where the name begins in the path. Known before, because it is asked for all the time.
    name_at: usize,
}

impl Field {
    const fn new(path: &'static str, format: Format, inclusion: Inclusion) -> Self {
        Self {
            path,
            format,
            since: Version::V2_1_0,
            until: Version::V2_3_1,
            channels: Channels::ALL,
            inclusion,
            name_at: after_last_dot(path),
        }
    }

    pub(crate) const fn since(mut self, version: Version) -> Self {
        self.since = version;
        self
    }

    pub(crate) const fn until(mut self, version: Version) -> Self {
        self.until = version;
        self
    }

    pub(crate) const fn on(mut self, channels: Channels) -> Self {
        self.channels = channels;
        self
    }

    /// Whether there is such a field in a message of that version and channel. Without a channel
    /// only fields of all channels are known.
    pub fn applies(&self, version: Version, channel: Option<DeviceChannel>) -> bool {
        let on_channel = match channel {
            Some(channel) => self.channels.contains(channel),
            None => self.channels == Channels::ALL,
        };
        self.since <= version && version <= self.until && on_channel
    }

    /// The name, without that of the object it is in.
    pub fn name(&self) -> &'static str {
        self.path.get(self.name_at..).unwrap_or_default()
    }

    /// The path of the object it is in, empty for the message itself.
    pub(crate) fn parent(&self) -> &'static str {
        self.path
            .get(..self.name_at.saturating_sub(1))
            .unwrap_or_default()
    }
}

const fn after_last_dot(path: &str) -> usize {
    let bytes = path.as_bytes();
    let mut at = bytes.len();
    while at > 0 && bytes[at - 1] != b'.' {
        at -= 1;
    }
    at
}

pub(crate) const fn required(path: &'static str, format: Format) -> Field {
    Field::new(path, format, Inclusion::Required)
}

pub(crate) const fn optional(path: &'static str, format: Format) -> Field {
    Field::new(path, format, Inclusion::Optional)
}

pub(crate) const fn when(rule: &'static Rule, path: &'static str, format: Format) -> Field {
    Field::new(path, format, Inclusion::Conditional(rule))
}

/// Under a condition, a field that is there has one of these values.
pub(crate) struct Constraint {
    pub(crate) until: Version,
    pub(crate) when: Condition,
    pub(crate) path: &'static str,
    pub(crate) one_of: &'static [&'static str],
}
