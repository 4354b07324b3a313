//! Settings of the vault itself.

use std::fmt;

use super::section::section;
use super::setting::{Setting, choice};

section! {
    /// Environment and region of this vault, and the name of this node.
    pub struct Vault in "vault" {
        /// Whether this vault stores test data or production data. Keys of one environment are not valid in the other.
        pub environment: Environment = Environment::Test,
        /// Region in the API keys that this vault creates: 2 to 10 lowercase letters.
        pub region: Region = Region("us".to_owned()),
        /// Name of this node in logs, traces and exported metrics. If unset, the host name.
        pub node: Option<String> = None,
    }
}

choice! {
    /// Environment of a vault.
    pub enum Environment {
        Test = "test",
        Production = "production",
    }
}

impl Vault {
    pub fn node_name(&self) -> String {
        self.node
            .clone()
            .or_else(host_name)
            .unwrap_or_else(|| "node".to_owned())
    }
}

fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Region(String);

impl Region {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Setting for Region {
    fn kind() -> String {
        "text".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let fits = (2..=10).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err("must be 2 to 10 lowercase letters, such as us".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    fn text(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_2_to_10_lowercase_letters() {
        let cases = [
            ("us", true),
            ("eu", true),
            ("abcdefghij", true),
            ("u", false),
            ("abcdefghijk", false),
            ("US", false),
            ("u1", false),
            ("e_u", false),
            ("é", false),
        ];
        for (text, expected) in cases {
            assert_eq!(Region::parse(text).is_ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn node_name_defaults_to_the_host_name() {
        let named = Vault {
            node: Some("left".to_owned()),
            ..Vault::default()
        };

        assert_eq!(named.node_name(), "left");
        assert!(!Vault::default().node_name().is_empty());
    }
}
