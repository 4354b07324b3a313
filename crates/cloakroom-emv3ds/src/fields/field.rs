//! Rows of the field tables.

use std::fmt;

use super::condition::{Condition, Context, Rule};
use super::format::Format;
use crate::codes::DeviceChannel;
use crate::version::Version;

/// A set of device channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels(u8);

impl Channels {
    pub const APP: Self = Self(1);
    pub const BROWSER: Self = Self(2);
    pub const THREE_RI: Self = Self(4);
    /// The channels with the cardholder present.
    pub const APP_AND_BROWSER: Self = Self(3);
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

/// Whether a field is required.
#[derive(Clone, Copy, Debug)]
pub enum Inclusion {
    Required,
    Optional,
    /// Required if the rule's condition holds, otherwise optional.
    Conditional(&'static Rule),
}

impl Inclusion {
    pub(crate) fn requires(self, context: &Context<'_>) -> bool {
        match self {
            Self::Required => true,
            Self::Optional => false,
            Self::Conditional(rule) => rule.condition.holds(context),
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

/// A field in a range of versions and a set of device channels.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Names joined by dots. Elements of a list have the path of the list.
    pub path: &'static str,
    pub format: Format,
    pub since: Version,
    pub until: Version,
    pub channels: Channels,
    /// For a field of an object: applies if the object is present.
    pub inclusion: Inclusion,
    /// Offset of the name in the path, precomputed because it is used for every lookup.
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

    /// Whether the field exists in this version and on this channel. Without a channel, only fields
    /// of all channels exist.
    pub fn applies(&self, version: Version, channel: Option<DeviceChannel>) -> bool {
        let on_channel = match channel {
            Some(channel) => self.channels.contains(channel),
            None => self.channels == Channels::ALL,
        };
        self.since <= version && version <= self.until && on_channel
    }

    /// The last component of the path.
    pub fn name(&self) -> &'static str {
        self.path.get(self.name_at..).unwrap_or_default()
    }

    /// The path of the enclosing object; empty for a top-level field.
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

/// Restricts the values of a field, if present, under a condition.
pub(crate) struct Constraint {
    pub(crate) until: Version,
    pub(crate) when: Condition,
    pub(crate) path: &'static str,
    pub(crate) one_of: &'static [&'static str],
}
