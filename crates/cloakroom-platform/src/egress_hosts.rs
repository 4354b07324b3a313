//! Allowlists of destination hosts for outbound requests: one of the operator, and one per tenant below it.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::card_numbers::contains_card_number;

const PATTERNS_MAX: usize = 200;
const HOST_LENGTH_MAX: usize = 253;
const LABEL_LENGTH_MAX: usize = 63;

/// Host patterns, at least one: a DNS name, `*.` with a DNS name for all its subdomains, or `*` for every host.
///
/// The text form is comma-separated, in lowercase and sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pattern {
    Any,
    /// The subdomains of a name, but not the name itself. The text starts with a dot.
    Subdomains(String),
    Exact(String),
}

impl HostList {
    pub const RULE: &str = "must be 1 to 200 DNS names such as `api.example.com` or `*.example.com`, separated by \
                            commas; non-ASCII names in their `xn--` form";

    /// Whether a host, in lowercase and ASCII, matches one of the patterns.
    pub fn contains(&self, host: &str) -> bool {
        self.0.iter().any(|pattern| match pattern {
            Pattern::Any => true,
            Pattern::Subdomains(suffix) => {
                host.len() > suffix.len() && host.ends_with(suffix.as_str())
            }
            Pattern::Exact(name) => name == host,
        })
    }

    /// Whether every host is allowed.
    pub fn allows_any(&self) -> bool {
        self.0.contains(&Pattern::Any)
    }
}

impl FromStr for Pattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Ok(Self::Any);
        }
        let name = text.strip_prefix("*.").unwrap_or(&text);
        if !is_dns_name(name) || contains_card_number(name) {
            return Err(HostList::RULE);
        }
        Ok(match text.strip_prefix('*') {
            Some(suffix) => Self::Subdomains(suffix.to_owned()),
            None => Self::Exact(text),
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Subdomains(suffix) => write!(f, "*{suffix}"),
            Self::Exact(name) => f.write_str(name),
        }
    }
}

/// Whether `name` is a DNS name of at least two labels, in lowercase and ASCII, that no client reads as an IP address.
pub fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_LENGTH_MAX).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= HOST_LENGTH_MAX
        && name.split('.').all(is_label)
        && name
            .rsplit_once('.')
            .is_some_and(|(_, last)| !is_number(last))
}

/// Whether a label is a number, decimal or hexadecimal. A host that ends in one is an IPv4 address to the C library and
/// to browsers: `127.1`, `0x7f.1`.
fn is_number(label: &str) -> bool {
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    label.bytes().all(|byte| byte.is_ascii_digit()) || label.strip_prefix("0x").is_some_and(is_hex)
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<String> = self.0.iter().map(Pattern::to_string).collect();
        f.write_str(&patterns.join(","))
    }
}

impl FromStr for HostList {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let patterns = text.split(',').map(str::parse);
        let mut patterns: Vec<Pattern> = patterns.collect::<Result<_, _>>()?;
        patterns.sort_unstable();
        patterns.dedup();
        match patterns.len() <= PATTERNS_MAX {
            true => Ok(Self(patterns)),
            false => Err(Self::RULE),
        }
    }
}

impl Serialize for HostList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_dns_names_with_an_optional_wildcard() {
        let long = format!("{}.example", "a".repeat(64));
        let cases = [
            ("api.example.com", Some("api.example.com")),
            ("*.Example.com", Some("*.example.com")),
            ("*", Some("*")),
            (
                "b.example, *.example.com ,a.example,b.example",
                Some("*.example.com,a.example,b.example"),
            ),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("1.example", Some("1.example")),
            ("", None),
            (" ", None),
            ("a.example,", None),
            ("localhost", None),
            ("com", None),
            ("*.com", None),
            ("**.example.com", None),
            ("a.*.example.com", None),
            ("*example.com", None),
            ("127.0.0.1", None),
            ("*.0.0.1", None),
            ("a.0x7f", None),
            ("a.0x", None),
            ("[::1]", None),
            ("a.example:443", None),
            ("https://a.example", None),
            ("a.example/", None),
            ("a.example.", None),
            ("a..example", None),
            ("-a.example", None),
            ("a_b.example", None),
            ("bücher.example", None),
            ("4242424242424242.example", None),
            (long.as_str(), None),
        ];
        for (text, expected) in cases {
            let list: Result<HostList, _> = text.parse();
            let shown = list.map(|list| list.to_string()).ok();
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
        let many: Vec<String> = (0..=PATTERNS_MAX)
            .map(|n| format!("a{n}.example"))
            .collect();
        assert!(many.join(",").parse::<HostList>().is_err());
        assert!(many[1..].join(",").parse::<HostList>().is_ok());
    }

    #[test]
    fn a_wildcard_matches_subdomains_only() {
        let list: HostList = "api.example.com,*.psp.example".parse().unwrap();
        for (host, expected) in [
            ("api.example.com", true),
            ("a.psp.example", true),
            ("a.b.psp.example", true),
            ("psp.example", false),
            (".psp.example", false),
            ("apsp.example", false),
            ("a.psp.example.net", false),
            ("example.com", false),
            ("a.api.example.com", false),
            ("", false),
        ] {
            assert_eq!(list.contains(host), expected, "{host}");
        }
        let any: HostList = "*".parse().unwrap();
        assert!(any.contains("a.example") && any.allows_any() && !list.allows_any());
    }
}
