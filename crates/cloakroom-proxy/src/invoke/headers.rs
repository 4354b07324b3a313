//! Request headers: which are sent to the destination, and their expressions.

use http::header::{
    self, CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use serde_json::Value;

use super::call::single;
use super::error::Error;
use super::template::{contains_expression, grouped, value_text};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const BT_KEEP_ALIVE: HeaderName = HeaderName::from_static("bt-proxy-keep-alive");
const BT_CONNECTION: HeaderName = HeaderName::from_static("bt-proxy-connection");
/// Names the proxies that a request has passed (RFC 8586).
const LOOP: HeaderName = HeaderName::from_static("cdn-loop");
const LOOP_MARK: &str = "cloakroom";
/// Headers of this service.
const OWN_PREFIX: &str = "bt-";

/// Headers about one connection (RFC 9110, section 7.6.1), and those that the client of the destination writes.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The headers of a request for the destination. Repeated headers stay repeated, in their order.
pub(super) fn outgoing(sent: &HeaderMap) -> HeaderMap {
    let named = named_by_connection(sent);
    let mut headers = HeaderMap::with_capacity(sent.len());
    for (name, value) in sent {
        if is_forwarded(name) && !named.contains(name) {
            headers.append(name, value.clone());
        }
    }
    if let Some(value) = connection(sent) {
        headers.insert(CONNECTION, value);
    }
    if let Some(value) = keep_alive(sent) {
        headers.insert(KEEP_ALIVE, value);
    }
    headers
}

/// Marks a request that this service sends.
pub(super) fn mark(headers: &mut HeaderMap) {
    headers.append(LOOP, HeaderValue::from_static(LOOP_MARK));
}

/// Whether a request was sent by this service: it would pass the proxy again and again.
pub(super) fn is_marked(headers: &HeaderMap) -> bool {
    let values = headers.get_all(LOOP).iter();
    let mut values = values.filter_map(|value| value.to_str().ok());
    values.any(|value| {
        let mut names = value.split([',', ';']);
        names.any(|name| name.trim().eq_ignore_ascii_case(LOOP_MARK))
    })
}

/// The headers that `Connection` declares to be about this connection.
pub(super) fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).iter();
    let names = values.filter_map(|value| value.to_str().ok());
    let names = names.flat_map(|names| names.split(','));
    names.filter_map(|name| name.trim().parse().ok()).collect()
}

pub(super) fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

pub(super) fn is_own(name: &HeaderName) -> bool {
    name.as_str().starts_with(OWN_PREFIX)
}

/// The path of a request to this node (`Forwarded` and the like) is nothing that a destination should learn. Headers that
/// replace method or path at some destinations would get round the operations that a proxy allows.
fn is_forwarded(name: &HeaderName) -> bool {
    const WRITTEN_ANEW: [HeaderName; 5] = [HOST, CONTENT_LENGTH, EXPECT, FORWARDED, VIA];
    const REPLACING: [&str; 6] = [
        "x-real-ip",
        "x-original-url",
        "x-rewrite-url",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
    ];
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    // Some destinations do not distinguish the two.
    let text = name.as_str().replace('_', "-");
    name.as_str().bytes().all(is_plain)
        && !is_own(name)
        && !is_hop_by_hop(name)
        && !WRITTEN_ANEW.iter().any(|it| it.as_str() == text)
        && !text.starts_with("x-forwarded-")
        && !REPLACING.contains(&&*text)
}

/// `Connection` for the destination. Other options would remove headers of the request on its way.
fn connection(sent: &HeaderMap) -> Option<HeaderValue> {
    let value = single(sent, &BT_CONNECTION)?.trim();
    let options = ["close", "keep-alive"];
    let option = options
        .into_iter()
        .find(|option| value.eq_ignore_ascii_case(option));
    option.map(HeaderValue::from_static)
}

fn keep_alive(sent: &HeaderMap) -> Option<HeaderValue> {
    let value = single(sent, &BT_KEEP_ALIVE)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=, ".contains(&byte);
    let value = value.bytes().all(is_plain).then_some(value)?;
    HeaderValue::from_str(value).ok()
}

/// The values with expressions, by the name of their header.
pub(super) fn document(sent: &HeaderMap) -> Value {
    let named = named_by_connection(sent);
    let forwarded = sent
        .iter()
        .filter(|(name, _)| is_forwarded(name) && !named.contains(name));
    let with_expressions = forwarded.filter(|(_, value)| has_expression(value));
    let names: Vec<&HeaderName> = with_expressions.map(|(name, _)| name).collect();
    let all = sent.iter().filter(|(name, _)| names.contains(name));
    grouped(all.map(|(name, value)| (name.to_string(), text_of(value).into())))
}

fn has_expression(value: &HeaderValue) -> bool {
    std::str::from_utf8(value.as_bytes()).is_ok_and(contains_expression)
}

/// Bytes that are not UTF-8 are replaced; only headers with an expression beside them are affected.
fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The headers of a filled document. A value with a line break would add headers of its own, so control characters become
/// spaces: no value decides whether the request is sent.
pub(super) fn rendered(filled: &Value) -> Result<Vec<(HeaderName, Vec<HeaderValue>)>, Error> {
    let mut headers = Vec::new();
    for (name, values) in filled.as_object().into_iter().flatten() {
        let mut rendered = Vec::new();
        for value in values.as_array().into_iter().flatten() {
            let text = value_text(value).replace(char::is_control, " ");
            let value = HeaderValue::from_bytes(text.as_bytes());
            let mut value = value.map_err(|_| Error::NotEvaluated)?;
            value.set_sensitive(true);
            rendered.push(value);
        }
        let name: HeaderName = name.parse().map_err(|_| Error::NotEvaluated)?;
        headers.push((name, rendered));
    }
    Ok(headers)
}

/// Asks for a response that transforms can read.
pub(super) fn require_identity(headers: &mut HeaderMap) {
    let identity = HeaderValue::from_static("identity");
    headers.insert(header::ACCEPT_ENCODING, identity);
}

/// Asks for a response that can be searched: complete and not compressed.
pub(super) fn require_readable(headers: &mut HeaderMap) {
    require_identity(headers);
    headers.remove(header::RANGE);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn headers_about_this_hop_are_not_forwarded() {
        let sent = map(&[
            ("host", "vault.example.com"),
            ("content-length", "3"),
            ("content-type", "text/plain"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("proxy-authorization", "Basic x"),
            ("x-forwarded-for", "10.0.0.1"),
            ("forwarded", "for=10.0.0.1"),
            ("bt-api-key", "key"),
            ("bt-proxy-url", "https://api.example.com"),
            ("bt-trace-id", "t"),
            ("bt-unknown", "u"),
            ("x.dotted", "1"),
            ("x~tilde", "1"),
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("accept", "a"),
            ("accept", "b"),
            ("x_under", "1"),
            ("x_forwarded_for", "10.0.0.1"),
            ("x-http-method-override", "DELETE"),
            ("x-original-url", "/refunds"),
        ]);
        let expected = map(&[
            ("content-type", "text/plain"),
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("accept", "a"),
            ("accept", "b"),
            ("x_under", "1"),
        ]);
        assert_eq!(outgoing(&sent), expected);
    }

    #[test]
    fn requests_of_this_service_are_recognized() {
        for (value, expected) in [
            ("cloakroom", true),
            ("other; v=1, Cloakroom", true),
            ("cloakroom-other", false),
            ("", false),
        ] {
            let headers = map(&[("cdn-loop", value)]);
            assert_eq!(is_marked(&headers), expected, "{value}");
        }
        let mut headers = HeaderMap::new();
        assert!(!is_marked(&headers));
        mark(&mut headers);
        assert!(is_marked(&headers));
    }

    #[test]
    fn connection_options_cannot_remove_headers() {
        for (value, expected) in [
            ("close", Some("close")),
            ("Keep-Alive", Some("keep-alive")),
            ("close, content-length", None),
            ("upgrade", None),
        ] {
            let sent = map(&[("bt-proxy-connection", value)]);
            let headers = outgoing(&sent);
            let connection = headers.get(CONNECTION).map(|it| it.to_str().unwrap());
            assert_eq!(connection, expected, "{value}");
        }
        let sent = map(&[("bt-proxy-keep-alive", "timeout=5, max=10")]);
        assert_eq!(outgoing(&sent)[KEEP_ALIVE], "timeout=5, max=10");
    }

    #[test]
    fn values_with_line_breaks_add_no_header() {
        for (text, expected) in [("a\r\nx: y", "a  x: y"), ("a\0\u{7f}\u{85}b", "a   b")] {
            let headers = rendered(&json!({ "x-a": [text] })).unwrap();
            assert_eq!(headers[0].1, [expected], "{text:?}");
        }
        let headers = rendered(&json!({ "x-a": ["a", 1, null] })).unwrap();
        let values: Vec<&[u8]> = headers[0].1.iter().map(|it| it.as_bytes()).collect();
        assert_eq!(values, [b"a".as_slice(), b"1", b""]);
    }
}
