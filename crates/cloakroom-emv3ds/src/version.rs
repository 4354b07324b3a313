//! Protocol versions and their negotiation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text is not a protocol version such as `2.2.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protocol version")]
pub struct InvalidVersion;

/// A supported protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Version {
    V2_1_0,
    V2_2_0,
    V2_3_1,
}

impl Version {
    pub const ALL: [Self; 3] = [Self::V2_1_0, Self::V2_2_0, Self::V2_3_1];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2_1_0 => "2.1.0",
            Self::V2_2_0 => "2.2.0",
            Self::V2_3_1 => "2.3.1",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == text);
        known.ok_or(InvalidVersion)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.as_str().to_owned()
    }
}

impl TryFrom<String> for Version {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, InvalidVersion> {
        text.parse()
    }
}

/// A version announced by another component, supported here or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Announced([u16; 3]);

impl Announced {
    /// The supported version that equals this one.
    pub fn supported(self) -> Option<Version> {
        Version::ALL
            .into_iter()
            .find(|known| Self::from(*known) == self)
    }
}

impl From<Version> for Announced {
    fn from(version: Version) -> Self {
        match version {
            Version::V2_1_0 => Self([2, 1, 0]),
            Version::V2_2_0 => Self([2, 2, 0]),
            Version::V2_3_1 => Self([2, 3, 1]),
        }
    }
}

impl fmt::Display for Announced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        out.pad(&format!("{major}.{minor}.{patch}"))
    }
}

impl FromStr for Announced {
    type Err = InvalidVersion;

    /// Parses three numbers without leading zeros, five to eight characters in all.
    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        if !(5..=8).contains(&text.len()) {
            return Err(InvalidVersion);
        }
        let mut parts = text.split('.');
        let mut numbers = [0; 3];
        for number in &mut numbers {
            *number = parse_number(parts.next().ok_or(InvalidVersion)?)?;
        }
        if parts.next().is_some() {
            return Err(InvalidVersion);
        }
        Ok(Self(numbers))
    }
}

fn parse_number(text: &str) -> Result<u16, InvalidVersion> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(InvalidVersion);
    }
    text.parse().map_err(|_| InvalidVersion)
}

impl From<Announced> for String {
    fn from(version: Announced) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for Announced {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, InvalidVersion> {
        text.parse()
    }
}

/// The oldest and the newest version that a component supports. An inverted span contains no
/// version; it is representable because card ranges of a DS may contain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    pub start: Announced,
    pub end: Announced,
}

impl Span {
    pub fn is_sound(&self) -> bool {
        self.start <= self.end
    }

    pub fn contains(&self, version: Version) -> bool {
        let version = Announced::from(version);
        self.start <= version && version <= self.end
    }
}

/// The versions that the 3DS Server, the DS and the ACS support, ascending. May be empty.
pub fn common_versions(ours: &[Version], directory_server: &Span, acs: &Span) -> Vec<Version> {
    let is_common = |version: &Version| {
        ours.contains(version) && directory_server.contains(*version) && acs.contains(*version)
    };
    Version::ALL.into_iter().filter(is_common).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: &str, end: &str) -> Span {
        Span {
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
        }
    }

    #[test]
    fn versions_have_one_spelling() {
        for text in ["2.1.0", "2.2.0", "2.3.1", "2.0.1", "3.0.0", "2.10.123"] {
            assert_eq!(text.parse::<Announced>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "2.2",
            "2.2.0.0",
            "02.2.0",
            "2.2.x",
            "2..0",
            "2.2.0 ",
            "+2.2.0",
            "2.10.1234",
        ] {
            assert_eq!(text.parse::<Announced>(), Err(InvalidVersion), "{text:?}");
        }
        assert_eq!("2.0.0".parse::<Version>(), Err(InvalidVersion));
    }

    #[test]
    fn versions_are_ordered_numerically() {
        let announced = |text: &str| text.parse::<Announced>().unwrap();
        assert!(announced("2.9.0") < announced("2.10.0"));
        assert!(announced("2.2.0") < announced("2.2.1"));
        assert_eq!(announced("2.3.1").supported(), Some(Version::V2_3_1));
        assert_eq!(announced("2.3.0").supported(), None);
    }

    #[test]
    fn common_versions_are_ascending_and_inside_both_spans() {
        use Version::{V2_1_0, V2_2_0, V2_3_1};
        let ours = [V2_2_0, V2_1_0, V2_3_1, V2_2_0];
        for (server, acs, common) in [
            (
                span("2.1.0", "2.3.1"),
                span("2.1.0", "2.3.1"),
                &[V2_1_0, V2_2_0, V2_3_1][..],
            ),
            (span("2.1.0", "2.2.0"), span("2.2.0", "2.3.1"), &[V2_2_0]),
            (span("2.0.1", "2.10.0"), span("2.1.1", "2.2.9"), &[V2_2_0]),
            (span("2.1.0", "2.1.0"), span("2.2.0", "2.2.0"), &[]),
            (span("2.3.1", "2.1.0"), span("2.1.0", "2.3.1"), &[]),
        ] {
            assert_eq!(common_versions(&ours, &server, &acs), common);
        }
        assert_eq!(
            common_versions(&[V2_1_0], &span("2.1.0", "2.3.1"), &span("2.2.0", "2.3.1")),
            []
        );
        assert!(!span("2.3.1", "2.1.0").is_sound());
        assert!(span("2.1.0", "2.1.0").is_sound());
    }
}
