//! Protocol versions: the ones we speak, the ones others announce, and what both have in common.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text is not a version like `2.2.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protocol version")]
pub struct NotAVersion;

/// A version whose messages can be read and written here.
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
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == text);
        known.ok_or(NotAVersion)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.as_str().to_owned()
    }
}

impl TryFrom<String> for Version {
    type Error = NotAVersion;

    fn try_from(text: String) -> Result<Self, NotAVersion> {
        text.parse()
    }
}

/// Any version that another party announces, also one that is not spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Announced([u16; 3]);

impl Announced {
    /// The version of ours that this one is.
    pub fn known(self) -> Option<Version> {
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
    type Err = NotAVersion;

    /// Five to eight characters, three numbers, none with a leading zero: one spelling each.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        if !(5..=8).contains(&text.len()) {
            return Err(NotAVersion);
        }
        let mut parts = text.split('.');
        let mut numbers = [0; 3];
        for number in &mut numbers {
            *number = number_of(parts.next().ok_or(NotAVersion)?)?;
        }
        if parts.next().is_some() {
            return Err(NotAVersion);
        }
        Ok(Self(numbers))
    }
}

fn number_of(text: &str) -> Result<u16, NotAVersion> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(NotAVersion);
    }
    text.parse().map_err(|_| NotAVersion)
}

impl From<Announced> for String {
    fn from(version: Announced) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for Announced {
    type Error = NotAVersion;

    fn try_from(text: String) -> Result<Self, NotAVersion> {
        text.parse()
    }
}

/// From the oldest to the newest version that a party speaks. Others may announce nonsense, so an
/// inverted span is representable: it holds no version.
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

/// What all three speak, ascending. Empty if there is no such version.
pub fn common_versions(ours: &[Version], directory_server: &Span, acs: &Span) -> Vec<Version> {
    let everybody = |version: &Version| {
        ours.contains(version) && directory_server.contains(*version) && acs.contains(*version)
    };
    Version::ALL.into_iter().filter(everybody).collect()
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
            assert_eq!(text.parse::<Announced>(), Err(NotAVersion), "{text:?}");
        }
        assert_eq!("2.0.0".parse::<Version>(), Err(NotAVersion));
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        let announced = |text: &str| text.parse::<Announced>().unwrap();
        assert!(announced("2.9.0") < announced("2.10.0"));
        assert!(announced("2.2.0") < announced("2.2.1"));
        assert_eq!(announced("2.3.1").known(), Some(Version::V2_3_1));
        assert_eq!(announced("2.3.0").known(), None);
    }

    #[test]
    fn what_all_speak_is_ascending_and_inside_both_spans() {
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
