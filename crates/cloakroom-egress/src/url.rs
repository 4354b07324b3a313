//! URLs of destinations.

use std::fmt;
use std::str::FromStr;

use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::egress_hosts::is_dns_name;
use http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;

const URL_LENGTH_MAX: usize = 8_192;
const HTTPS_PORT: u16 = 443;
/// Rounds of percent-decoding in the search for `..`. Text that still changes after them is rejected.
const DECODING_ROUNDS: usize = 4;

/// An https URL with a DNS name. Whether its host and port are allowed is a question for [`Egress::check`].
///
/// The host is canonical: lowercase and ASCII. Everything that any parser could take for an IP address, for credentials
/// or for the end of the host is rejected instead of interpreted.
///
/// [`Egress::check`]: crate::Egress::check
#[derive(Clone, PartialEq, Eq)]
pub struct DestinationUrl {
    /// The canonical URL.
    text: String,
    host_end: usize,
    path_start: usize,
    port: u16,
    target: PathAndQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    #[error("must be an https URL such as `https://api.example.com/v1`")]
    NotHttps,
    #[error("must have at most 8192 characters")]
    TooLong,
    #[error(
        "must not contain spaces, control characters or backslashes, and non-ASCII characters only in the host"
    )]
    Characters,
    #[error("must not contain a user name or password; send credentials in a header")]
    UserInfo,
    #[error("must not contain a fragment (`#`)")]
    Fragment,
    #[error("must have a DNS name as its host, not an IP address or a local name")]
    Host,
    #[error("must have a port from 1 to 65535, or none")]
    Port,
    #[error("must have a valid path and query")]
    Path,
    #[error(
        "must not leave the path of the destination URL with `..`, or contain encoded bytes that are no text"
    )]
    Traversal,
}

impl DestinationUrl {
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        if text.len() > URL_LENGTH_MAX {
            return Err(InvalidUrl::TooLong);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) || text.contains('\\') {
            return Err(InvalidUrl::Characters);
        }
        let rest = match text.split_at_checked("https://".len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https://") => rest,
            _ => return Err(InvalidUrl::NotHttps),
        };
        if rest.contains('#') {
            return Err(InvalidUrl::Fragment);
        }
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(InvalidUrl::UserInfo);
        }
        if authority.contains(['[', ']']) {
            return Err(InvalidUrl::Host);
        }
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, parse_port(port)?),
            None => (authority, HTTPS_PORT),
        };
        let host = canonical_host(host).ok_or(InvalidUrl::Host)?;
        Self::new(&host, port, target)
    }

    fn new(host: &str, port: u16, target: &str) -> Result<Self, InvalidUrl> {
        if !target.is_ascii() {
            return Err(InvalidUrl::Characters);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}");
        let mut text = format!("https://{host}");
        let host_end = text.len();
        if port != HTTPS_PORT {
            text.push_str(&format!(":{port}"));
        }
        let path_start = text.len();
        text.push_str(&target);
        if text.len() > URL_LENGTH_MAX {
            return Err(InvalidUrl::TooLong);
        }
        let target = PathAndQuery::from_str(&target).map_err(|_| InvalidUrl::Path)?;
        Ok(Self {
            text,
            host_end,
            path_start,
            port,
            target,
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn host(&self) -> &str {
        &self.text["https://".len()..self.host_end]
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, host and, unless it is 443, port.
    pub fn origin(&self) -> &str {
        &self.text[..self.path_start]
    }

    /// Host and, unless it is 443, port: the `Host` header.
    pub fn authority(&self) -> &str {
        &self.text["https://".len()..self.path_start]
    }

    pub fn path_and_query(&self) -> &PathAndQuery {
        &self.target
    }

    /// Appends the suffix and the query of a request, both verbatim.
    ///
    /// The trailing slash of the base path is removed, and the query of the base comes first. `suffix` is empty or
    /// starts with a slash. It cannot leave the base path, in any encoding that a server might decode.
    pub fn join(&self, suffix: &str, query: Option<&str>) -> Result<Self, InvalidUrl> {
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let has_other = |text: &str| text.contains(['\\', '#']);
        let query = query.unwrap_or_default();
        if !is_plain(suffix) || !is_plain(query) || has_other(suffix) || has_other(query) {
            return Err(InvalidUrl::Characters);
        }
        if suffix.contains('?') || !(suffix.is_empty() || suffix.starts_with('/')) {
            return Err(InvalidUrl::Path);
        }
        if leaves_its_parent(suffix) {
            return Err(InvalidUrl::Traversal);
        }
        let path = self.target.path();
        let path = path.strip_suffix('/').unwrap_or(path);
        let own = self.target.query().unwrap_or_default();
        let queries = [own, query].into_iter().filter(|query| !query.is_empty());
        let queries = queries.collect::<Vec<_>>().join("&");
        let mark = if queries.is_empty() { "" } else { "?" };
        Self::new(
            self.host(),
            self.port,
            &format!("{path}{suffix}{mark}{queries}"),
        )
    }
}

/// Shows host and port only: paths and queries may contain credentials.
impl fmt::Debug for DestinationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.origin())
    }
}

fn parse_port(text: &str) -> Result<u16, InvalidUrl> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0')
        && !text.is_empty();
    let port = text.parse().ok().filter(|_| is_canonical);
    port.ok_or(InvalidUrl::Port)
}

/// The host in lowercase ASCII, if it is a DNS name.
///
/// Characters that IDNA maps to others, such as fullwidth digits and ideographic full stops, are rejected: a name is
/// accepted only in the form that it is displayed in. So are card numbers, because hosts are logged.
fn canonical_host(host: &str) -> Option<String> {
    // Other letters have no form that is mistaken for a delimiter, and none that becomes ASCII in lowercase.
    let is_plain = |c: char| c.is_alphanumeric() && !c.to_lowercase().any(|c| c.is_ascii());
    if !host.chars().all(|c| c.is_ascii() || is_plain(c)) {
        return None;
    }
    let lowercase = host.to_lowercase();
    let ascii = match lowercase.is_ascii() {
        true => lowercase,
        false => {
            let ascii = idna::domain_to_ascii_strict(&lowercase).ok()?;
            let (displayed, result) = idna::domain_to_unicode(&ascii);
            if result.is_err() || displayed != lowercase {
                return None;
            }
            ascii
        }
    };
    let is_local = ascii.ends_with(".localhost");
    let is_allowed = is_dns_name(&ascii) && !is_local && !contains_card_number(&ascii);
    is_allowed.then_some(ascii)
}

/// Whether a path has a `..` segment, in any form that a server might decode to it: percent-encoded, repeatedly, with
/// backslashes, or with path parameters (`..;x`). Encoded bytes that are not UTF-8 (`%c0%ae` is an overlong dot) and
/// control characters (a NUL ends a segment for some servers) count as one, too.
fn leaves_its_parent(path: &str) -> bool {
    let is_parent = |segment: &str| segment.split(';').next() == Some("..");
    let has_parent = |path: &str| path.split(['/', '\\']).any(is_parent);
    let mut path = path.to_owned();
    for _ in 0..DECODING_ROUNDS {
        if has_parent(&path) {
            return true;
        }
        let Ok(decoded) = percent_decode_str(&path).decode_utf8() else {
            return true;
        };
        let decoded = decoded.into_owned();
        if decoded.chars().any(char::is_control) {
            return true;
        }
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts of URLs that parsers disagree about, beside any characters.
    const TRICKY: &str = r"(https://|[a-z]{1,3}\.example|@|:|//|/|\?|#|%2[eEfF]|%25|\.\.|\.|;|\\|[0-9]{1,3}|\PC){0,12}";

    proptest! {
        #[test]
        fn a_valid_url_means_the_same_to_another_parser(text in TRICKY) {
            let text = format!("https://a.example{text}");
            if let Ok(url) = DestinationUrl::parse(&text) {
                let uri: http::Uri = url.as_str().parse().unwrap();
                prop_assert_eq!(uri.host(), Some(url.host()));
                prop_assert_eq!(uri.port_u16().unwrap_or(443), url.port());
                prop_assert_eq!(uri.path_and_query(), Some(url.path_and_query()));
                prop_assert!(is_dns_name(url.host()));
                prop_assert_eq!(DestinationUrl::parse(url.as_str()), Ok(url));
            }
        }

        #[test]
        fn a_suffix_never_changes_the_origin_or_leaves_the_path(suffix in TRICKY, query in TRICKY) {
            let base = DestinationUrl::parse("https://a.example/v1").unwrap();
            if let Ok(joined) = base.join(&suffix, Some(&query)) {
                prop_assert_eq!(joined.origin(), base.origin());
                prop_assert!(joined.path_and_query().path().starts_with("/v1"));
                prop_assert_eq!(joined.path_and_query().path(), format!("/v1{suffix}"));
                prop_assert_eq!(DestinationUrl::parse(joined.as_str()), Ok(joined));
            }
        }
    }

    #[test]
    fn urls_are_canonical() {
        for (text, expected) in [
            ("https://api.example.com", "https://api.example.com/"),
            ("HTTPS://API.Example.COM/V1", "https://api.example.com/V1"),
            ("https://api.example.com:443/", "https://api.example.com/"),
            (
                "https://api.example.com:8443/a",
                "https://api.example.com:8443/a",
            ),
            (
                "https://api.example.com?a=b",
                "https://api.example.com/?a=b",
            ),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
            (
                "https://a.example/x//y/%2F?q=%20#".trim_end_matches('#'),
                "https://a.example/x//y/%2F?q=%20",
            ),
        ] {
            let url = DestinationUrl::parse(text).unwrap();
            assert_eq!(url.as_str(), expected, "{text}");
            assert_eq!(DestinationUrl::parse(expected).as_ref(), Ok(&url));
        }
        let url = DestinationUrl::parse("https://a.example:8443/b?c").unwrap();
        assert_eq!((url.host(), url.port()), ("a.example", 8443));
        assert_eq!(url.origin(), "https://a.example:8443");
        assert_eq!(url.authority(), "a.example:8443");
        assert_eq!(url.path_and_query().as_str(), "/b?c");
        assert_eq!(format!("{url:?}"), "https://a.example:8443");
    }

    #[test]
    fn a_suffix_and_a_query_are_appended_verbatim() {
        for (base, suffix, query, expected) in [
            ("https://a.example", "", None, "https://a.example/"),
            ("https://a.example/", "/b", None, "https://a.example/b"),
            (
                "https://a.example/v1/",
                "/b/",
                None,
                "https://a.example/v1/b/",
            ),
            ("https://a.example/v1/", "", None, "https://a.example/v1"),
            (
                "https://a.example/v1",
                "//b",
                None,
                "https://a.example/v1//b",
            ),
            ("https://a.example", "//b", None, "https://a.example//b"),
            (
                "https://a.example/v1",
                "/b%2Fc",
                None,
                "https://a.example/v1/b%2Fc",
            ),
            (
                "https://a.example/v1?k=1",
                "/b",
                Some("q=%20"),
                "https://a.example/v1/b?k=1&q=%20",
            ),
            (
                "https://a.example?k=1",
                "",
                Some(""),
                "https://a.example/?k=1",
            ),
            (
                "https://a.example",
                "/..a/b../...",
                Some("../.."),
                "https://a.example/..a/b../...?../..",
            ),
        ] {
            let base = DestinationUrl::parse(base).unwrap();
            let joined = base.join(suffix, query).unwrap();
            assert_eq!(joined.as_str(), expected);
            assert_eq!(DestinationUrl::parse(expected).unwrap(), joined);
        }
    }

    #[test]
    fn a_suffix_cannot_leave_the_base_path() {
        let base = DestinationUrl::parse("https://a.example/v1/charges").unwrap();
        for suffix in [
            "/..",
            "/../x",
            "/a/../../x",
            "/%2e%2e/x",
            "/.%2E/x",
            "/%2E./x",
            "/%252e%252e/x",
            "/%25252e%25252e/x",
            "/%2525252e%2525252e/x",
            "/%252525252e%252525252e/x",
            "/a%2f..%2fx",
            "/a%2f%2e%2e%2fx",
            "/a%5c..%5cx",
            "/a/..;/x",
            "/a/..;b=c/x",
            "/a/..%3bb/x",
            "/%c0%ae%c0%ae/x",
            "/%25c0%25ae%25c0%25ae/x",
            "/..%00/x",
            "/..%2500/x",
            "/..%09/x",
            "/a%0d%0ab",
            "/..%c2%85/x",
        ] {
            assert_eq!(
                base.join(suffix, None),
                Err(InvalidUrl::Traversal),
                "{suffix}"
            );
        }
        for (suffix, query, expected) in [
            ("/a\\..\\b", None, InvalidUrl::Characters),
            ("/a b", None, InvalidUrl::Characters),
            ("/a\r\nb", None, InvalidUrl::Characters),
            ("/a#b", None, InvalidUrl::Characters),
            ("/ü", None, InvalidUrl::Characters),
            ("/a?b", None, InvalidUrl::Path),
            ("a", None, InvalidUrl::Path),
            (".evil.example", None, InvalidUrl::Path),
            ("@evil.example", None, InvalidUrl::Path),
            (":8443", None, InvalidUrl::Path),
            ("", Some("a b"), InvalidUrl::Characters),
            ("", Some("a\nb"), InvalidUrl::Characters),
            ("", Some("a#b"), InvalidUrl::Characters),
        ] {
            assert_eq!(
                base.join(suffix, query),
                Err(expected),
                "{suffix:?} {query:?}"
            );
        }
        let long = format!("/{}", "a".repeat(URL_LENGTH_MAX));
        assert_eq!(base.join(&long, None), Err(InvalidUrl::TooLong));
    }
}
