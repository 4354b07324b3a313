//! Allowlists of hosts: those that hosted pages redirect to, that embed web elements, or that receive values from them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::card_numbers::contains_card_number;
use crate::egress_hosts::is_dns_name;

const HOSTS_MAX: usize = 50;
const URL_LENGTH_MAX: usize = 2_048;
const NOT_LISTED: &str =
    "must be an https URL whose host is in the tenant setting threeds_callback_hosts";
const NONE_LISTED: &str = "must be an https URL whose host is in the tenant setting \
                           threeds_callback_hosts, which is empty";

/// Sorted DNS names in lowercase. The text form is comma-separated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallbackHosts(Vec<String>);

impl CallbackHosts {
    pub const RULE: &str =
        "must be at most 50 DNS names such as `shop.example.com`, separated by commas";

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The listed names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Requires an https URL with a listed host. Test tenants may also use loopback addresses, with http or https.
    ///
    /// This prevents open redirects.
    pub fn check(&self, url: &str, is_test_tenant: bool) -> Result<(), &'static str> {
        let rule = match self.is_empty() {
            true => NONE_LISTED,
            false => NOT_LISTED,
        };
        // Browsers ignore control characters and treat a backslash as a slash; URLs with either are rejected.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        if url.len() > URL_LENGTH_MAX || !url.bytes().all(is_plain) {
            return Err(rule);
        }
        let uri: http::Uri = url.parse().map_err(|_| rule)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(rule);
        };
        let host = authority.host();
        let is_listed = scheme == "https" && self.contains(host);
        let is_web = ["https", "http"].contains(&scheme);
        let is_local = is_test_tenant && is_web && is_loopback(host);
        let has_user = authority.as_str().contains('@');
        match (is_listed || is_local) && !has_user {
            true => Ok(()),
            false => Err(rule),
        }
    }

    /// Whether `host` is listed itself. Subdomains of a listed host do not match.
    fn contains(&self, host: &str) -> bool {
        self.0
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(host))
    }
}

impl fmt::Display for CallbackHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl FromStr for CallbackHosts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let hosts = text.split(',').map(|host| host.trim().to_ascii_lowercase());
        let mut hosts: Vec<String> = hosts.collect();
        hosts.sort_unstable();
        hosts.dedup();
        let is_valid = |host: &String| is_dns_name(host) && !contains_card_number(host);
        match hosts.len() <= HOSTS_MAX && hosts.iter().all(is_valid) {
            true => Ok(Self(hosts)),
            false => Err(Self::RULE),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address: Option<IpAddr> = bare.unwrap_or(host).parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

impl Serialize for CallbackHosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallbackHosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dns_names_are_valid_hosts() {
        let long = format!("{}.example", "a".repeat(64));
        let cases = [
            ("", Some("")),
            (" ", Some("")),
            ("shop.example", Some("shop.example")),
            (
                "Shop.Example, a.shop.example",
                Some("a.shop.example,shop.example"),
            ),
            ("shop.example,shop.example", Some("shop.example")),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("localhost", None),
            ("127.0.0.1", None),
            ("[::1]", None),
            ("shop.example:443", None),
            ("https://shop.example", None),
            ("shop.example/", None),
            ("*.example", None),
            ("user@shop.example", None),
            ("-shop.example", None),
            ("shop..example", None),
            ("shop.example.", None),
            ("shop.example,", None),
            ("bücher.example", None),
            ("4242424242424242.example", None),
            (long.as_str(), None),
        ];
        for (text, expected) in cases {
            let hosts: Result<CallbackHosts, _> = text.parse();
            let shown = hosts.map(|hosts| hosts.to_string()).ok();
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
        let many: Vec<String> = (0..=HOSTS_MAX).map(|n| format!("a{n}.example")).collect();
        assert!(many.join(",").parse::<CallbackHosts>().is_err());
        assert!(many[1..].join(",").parse::<CallbackHosts>().is_ok());
    }

    #[test]
    fn hosts_match_exactly() {
        let hosts: CallbackHosts = "shop.example".parse().unwrap();

        assert!(hosts.contains("shop.example") && hosts.contains("SHOP.example"));
        for other in ["a.shop.example", "example", "ashop.example", ""] {
            assert!(!hosts.contains(other), "{other}");
        }
    }

    #[test]
    fn hosts_must_be_listed_and_loopback_is_for_test_tenants() {
        let listed: CallbackHosts = "shop.example".parse().unwrap();
        // URL, allowed for production tenants, allowed for test tenants.
        let cases = [
            ("https://shop.example", true, true),
            ("https://shop.example/a?b#c", true, true),
            ("https://SHOP.EXAMPLE:444/", true, true),
            ("http://shop.example/", false, false),
            ("https://other.example/", false, false),
            ("https://a.shop.example/", false, false),
            ("https://shop.example@other.example/", false, false),
            ("https://user@shop.example/", false, false),
            ("https://other.example\\@shop.example/", false, false),
            ("https://other.example/\\@shop.example/", false, false),
            ("https://shop.example\n.other.example/", false, false),
            ("ftp://shop.example/", false, false),
            ("javascript:alert(1)", false, false),
            ("/thanks", false, false),
            ("shop.example", false, false),
            ("", false, false),
            ("http://localhost:3000/", false, true),
            ("https://localhost/", false, true),
            ("http://127.0.0.1/", false, true),
            ("http://127.8.9.1:80/", false, true),
            ("http://[::1]/", false, true),
            ("http://[::2]/", false, false),
            ("http://127.0.0.1.other.example/", false, false),
            ("http://localhost@other.example/", false, false),
            ("http://0.0.0.0/", false, false),
        ];
        for (url, in_production, in_test) in cases {
            let allowed = |is_test| listed.check(url, is_test).is_ok();
            assert_eq!(allowed(false), in_production, "{url}");
            assert_eq!(allowed(true), in_test, "{url}");
        }
        let long = format!("https://shop.example/{}", "a".repeat(URL_LENGTH_MAX));
        assert!(listed.check(&long, false).is_err());
    }

    #[test]
    fn an_empty_list_allows_no_host_in_production() {
        let none = CallbackHosts::default();
        let url = "https://shop.example/";
        assert_eq!(none.check(url, false), Err(NONE_LISTED));
        assert_eq!(none.check(url, true), Err(NONE_LISTED));
        let local = "http://127.0.0.1:3000/thanks";
        assert_eq!(none.check(local, false), Err(NONE_LISTED));
        assert_eq!(none.check(local, true), Ok(()));
    }
}
