//! Containers: paths that group tokens and scope permissions.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const LENGTH_MAX: usize = 400;

/// A container path such as `/pci/high/`, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^/([A-Za-z0-9_-]+/)*$", max_length = 400)]
pub struct Container(Arc<str>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must start and end with `/`, hold letters, digits, `-` and `_` between them, and be at most \
     {LENGTH_MAX} characters long"
)]
pub struct InvalidContainer;

impl Container {
    pub fn parse(text: &str) -> Result<Self, InvalidContainer> {
        let inner = text.strip_prefix('/').ok_or(InvalidContainer)?;
        if text.len() > LENGTH_MAX {
            return Err(InvalidContainer);
        }
        if !inner.is_empty() {
            let segments = inner.strip_suffix('/').ok_or(InvalidContainer)?;
            let is_segment = |segment: &str| {
                !segment.is_empty()
                    && segment
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            };
            if !segments.split('/').all(is_segment) {
                return Err(InvalidContainer);
            }
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// Wraps a path that is a constant or was validated before it was stored.
    pub fn known(path: &str) -> Self {
        Self(path.into())
    }

    /// The root container, which contains all others.
    pub fn root() -> Self {
        Self::known("/")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Exclusive upper bound, in byte order, of this path and every path below it.
    ///
    /// Paths end in `/`, and `0` is the character after it.
    pub fn end(&self) -> String {
        format!("{}0", self.0.trim_end_matches('/'))
    }

    /// Whether `other` is this container or below it.
    pub fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&*self.0)
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Container {
    type Error = InvalidContainer;

    fn try_from(text: String) -> Result<Self, InvalidContainer> {
        Self::parse(&text)
    }
}

impl From<Container> for String {
    fn from(container: Container) -> Self {
        container.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_validated_and_lowercased() {
        let cases = [
            ("/", Some("/")),
            ("/pci/", Some("/pci/")),
            ("/PCI/High-1_a/", Some("/pci/high-1_a/")),
            ("", None),
            ("pci/", None),
            ("/pci", None),
            ("//", None),
            ("/pci//high/", None),
            ("/p ci/", None),
            ("/{{ data }}/", None),
            ("/p[i]/", None),
            ("/é/", None),
        ];
        for (text, expected) in cases {
            let parsed = Container::parse(text).ok();
            assert_eq!(parsed.as_ref().map(Container::as_str), expected, "{text}");
        }
        let long = format!("/{}/", "a".repeat(398));
        assert!(Container::parse(&long).is_ok());
        assert!(Container::parse(&format!("/{}/", "a".repeat(399))).is_err());
    }

    #[test]
    fn a_container_and_its_descendants_form_one_range() {
        let paths = [
            "/", "/a-b/", "/a/", "/a/0/", "/a/z_/", "/a0/", "/a_/", "/ab/", "/b/",
        ];
        for outer in paths.map(Container::known) {
            for inner in paths.map(Container::known) {
                let in_range = outer <= inner && *inner.as_str() < *outer.end();
                assert_eq!(in_range, outer.holds(&inner), "{outer} {inner}");
            }
        }
    }

    #[test]
    fn a_container_holds_itself_and_its_descendants() {
        let cases = [
            ("/", "/pci/high/", true),
            ("/pci/", "/pci/high/", true),
            ("/pci/high/", "/pci/high/", true),
            ("/pci/high/", "/pci/", false),
            ("/pc/", "/pci/", false),
        ];
        for (outer, inner, expected) in cases {
            assert_eq!(
                Container::known(outer).holds(&Container::known(inner)),
                expected
            );
        }
    }
}
