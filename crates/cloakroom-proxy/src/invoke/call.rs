//! A request to the proxy, as the caller sent it.

use std::sync::Arc;

use cloakroom_core::caller::Caller;
use cloakroom_platform::api::ClientAddr;
use cloakroom_platform::telemetry::TraceId;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Uri};

use super::Error;
use super::pairs::without_parameter;

const PROXY_KEY: HeaderName = HeaderName::from_static("bt-proxy-key");
const PROXY_URL: HeaderName = HeaderName::from_static("bt-proxy-url");
/// The query parameter with the key of a proxy, for clients that cannot set headers.
const KEY_PARAMETER: &str = "bt-proxy-key";
/// No key of a proxy is longer.
const KEY_CHARS_MAX: usize = 100;

/// What follows `/proxy` in the URI of a request, verbatim. An extension of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvocationPath {
    /// Empty, or starts with a slash.
    pub suffix: String,
    pub query: Option<String>,
}

impl InvocationPath {
    /// `None` unless the path is `/proxy` or below it.
    pub fn of(uri: &Uri) -> Option<Self> {
        let suffix = uri.path().strip_prefix("/proxy")?;
        (suffix.is_empty() || suffix.starts_with('/')).then(|| Self {
            suffix: suffix.to_owned(),
            query: uri.query().map(str::to_owned),
        })
    }
}

/// A request to the proxy without its body.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) suffix: String,
    /// Without the key of the proxy.
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) selector: Selector,
    /// `None` if the request has no API key.
    pub(super) caller: Option<Arc<Caller>>,
    pub(super) trace_id: Arc<str>,
    pub(super) client: Option<ClientAddr>,
}

/// Which proxy is invoked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// A pre-configured proxy, by its key.
    Key(String),
    /// An ephemeral proxy, by the URL of the destination; `None` if the header is missing or repeated.
    Url(Option<String>),
}

impl Call {
    pub(super) fn new(head: Parts) -> Self {
        let extensions = &head.extensions;
        let path = extensions.get::<InvocationPath>().cloned();
        let path = path.or_else(|| InvocationPath::of(&head.uri));
        let InvocationPath { suffix, query } = path.unwrap_or(InvocationPath {
            suffix: String::new(),
            query: None,
        });
        let trace_id = extensions.get::<TraceId>();
        Self {
            selector: Selector::of(&head.headers, query.as_deref()),
            query: query.map(|query| without_parameter(&query, KEY_PARAMETER)),
            suffix,
            caller: extensions.get::<Arc<Caller>>().cloned(),
            trace_id: trace_id.map_or_else(|| "".into(), |id| id.0.clone()),
            client: extensions.get::<ClientAddr>().copied(),
            method: head.method,
            headers: head.headers,
        }
    }
}

impl Selector {
    /// With a key, the URL is ignored. Of several keys none is used, so that no two parsers disagree about the proxy.
    pub(super) fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        let has_key = headers.contains_key(PROXY_KEY);
        let in_query = || super::pairs::parameter(query.unwrap_or_default(), KEY_PARAMETER);
        match (has_key, single(headers, &PROXY_KEY)) {
            (true, key) => Self::Key(key.unwrap_or_default().to_owned()),
            (false, _) => match in_query() {
                Some(key) => Self::Key(key),
                None => Self::Url(single(headers, &PROXY_URL).map(str::to_owned)),
            },
        }
    }

    /// The key, if it can be one.
    pub(super) fn key(&self) -> Result<Option<&str>, Error> {
        match self {
            Self::Url(_) => Ok(None),
            Self::Key(key) if (1..=KEY_CHARS_MAX).contains(&key.len()) => Ok(Some(key)),
            Self::Key(_) => Err(Error::UnknownProxy),
        }
    }
}

/// The value of a header that is sent exactly once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_after_proxy_is_verbatim() {
        for (uri, expected) in [
            ("/proxy", Some(("", None))),
            ("/proxy/", Some(("/", None))),
            ("/proxy?a=b", Some(("", Some("a=b")))),
            (
                "/proxy//a/%2F/b/?q=%20",
                Some(("//a/%2F/b/", Some("q=%20"))),
            ),
            ("/proxy/..%2fx", Some(("/..%2fx", None))),
            ("/proxies", None),
            ("/proxy%2Fa", None),
            ("/tokens", None),
        ] {
            let path = InvocationPath::of(&uri.parse().unwrap());
            let parts = path.as_ref().map(|it| (&*it.suffix, it.query.as_deref()));
            assert_eq!(parts, expected, "{uri}");
        }
    }

    #[test]
    fn a_key_takes_precedence_over_a_url() {
        let key = |key: &str| Selector::Key(key.to_owned());
        const URL: &str = "https://api.example.com";
        type Sent = &'static [(&'static str, &'static str)];
        let cases: [(Sent, &str, Selector); 7] = [
            (&[], "", Selector::Url(None)),
            (
                &[("bt-proxy-url", URL)],
                "",
                Selector::Url(Some(URL.to_owned())),
            ),
            (
                &[("bt-proxy-url", URL), ("bt-proxy-url", URL)],
                "",
                Selector::Url(None),
            ),
            (
                &[("bt-proxy-url", URL), ("bt-proxy-key", "k")],
                "",
                key("k"),
            ),
            (&[("bt-proxy-key", "k")], "bt-proxy-key=other", key("k")),
            (&[("bt-proxy-key", "k"), ("bt-proxy-key", "l")], "", key("")),
            (&[("bt-proxy-url", URL)], "a=b&bt-proxy-key=k", key("k")),
        ];
        for (sent, query, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                headers.append(name, value.parse().unwrap());
            }
            assert_eq!(
                Selector::of(&headers, Some(query)),
                expected,
                "{sent:?} {query}"
            );
        }
    }
}
