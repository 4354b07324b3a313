//! The response of the destination, as the caller receives it.

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use cloakroom_crypto::Sensitive;
use cloakroom_egress::{ResponseBody, SendError};
use cloakroom_platform::api::StreamedBody;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{
    AGE, ALT_SVC, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    EXPIRES, HeaderMap, HeaderName, HeaderValue, LOCATION, PRAGMA, REFRESH, SERVER, SET_COOKIE,
    STRICT_TRANSPORT_SECURITY, VIA, WWW_AUTHENTICATE,
};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};

use super::error::Error;
use super::headers::{is_hop_by_hop, is_own, named_by_connection};
use super::withheld::Withheld;
use crate::exchange::BufferedResponse;

pub const DESTINATION_STATUS: HeaderName = HeaderName::from_static("bt-proxy-destination-status");
/// A larger response is not searched for what it must not return.
const SEARCHED_BYTES_MAX: usize = 1024 * 1024;
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// A page of the destination runs no script, and has no origin: ours is not its own.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");

/// Headers that would act on the origin of this service in a browser or in a cache, or describe another server.
const REMOVED: [HeaderName; 12] = [
    AGE,
    ALT_SVC,
    CACHE_CONTROL,
    CONTENT_SECURITY_POLICY,
    EXPIRES,
    PRAGMA,
    REFRESH,
    SERVER,
    SET_COOKIE,
    STRICT_TRANSPORT_SECURITY,
    VIA,
    HeaderName::from_static("set-cookie2"),
];

const REMOVED_NAMES: [&str; 14] = [
    "accept-ch",
    "clear-site-data",
    "critical-ch",
    "cloudflare-cdn-cache-control",
    "nel",
    "origin-agent-cluster",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "sourcemap",
    "speculation-rules",
    "timing-allow-origin",
    // Instructions to a reverse proxy in front of this node, which it would follow inside of our network.
    "x-sendfile",
    "x-reproxy-url",
];

const REMOVED_PREFIXES: [&str; 10] = [
    "access-control-",
    "attribution-reporting-",
    "cdn-",
    "content-security-policy-",
    "cross-origin-",
    "public-key-pins",
    "surrogate-",
    "x-accel-",
    "x-lighttpd-",
    "x-litespeed-",
];

/// The response with the body as it arrives.
pub(super) fn streamed<B>(response: http::Response<B>) -> Response
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let (mut head, body) = response.into_parts();
    head.headers = returned(head.status.as_u16(), &head.headers);
    // A destination could set anything here only through us.
    head.extensions = http::Extensions::new();
    head.extensions.insert(StreamedBody);
    head.version = http::Version::default();
    Response::from_parts(head, Body::new(body))
}

/// The response with a complete body.
pub(super) fn complete(response: BufferedResponse) -> Response {
    let mut headers = returned(response.status.as_u16(), &response.headers);
    headers.remove(CONTENT_LENGTH);
    let mut complete = Response::new(Body::from(response.body.into_inner()));
    *complete.status_mut() = response.status;
    *complete.headers_mut() = headers;
    complete
}

/// Receives a response completely, for transforms.
pub(super) async fn receive(
    response: http::Response<ResponseBody>,
    max_bytes: usize,
) -> Result<BufferedResponse, Error> {
    let (head, mut body) = response.into_parts();
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::ResponseNotTransformed)?;
        // Trailers are not transformed, so they are not returned either.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if received.len() + data.len() > max_bytes {
            return Err(Error::ResponseNotTransformed);
        }
        received.extend_from_slice(&data);
    }
    Ok(BufferedResponse {
        status: head.status,
        headers: head.headers,
        body: Sensitive::new(received.into()),
    })
}

/// The response, searched for what it must not return. One with hidden card numbers is returned only if all of it could
/// be searched. Of others, the first part is searched.
pub(super) async fn searched(
    response: http::Response<ResponseBody>,
    withheld: &Withheld,
) -> Result<Response, Error> {
    let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    let is_encoded = encodings.any(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity"));
    if is_encoded || response.status() == StatusCode::PARTIAL_CONTENT {
        return Err(Error::ResponseWithheld);
    }
    let (mut head, mut rest) = response.into_parts();
    let mut start = BytesMut::new();
    let mut is_complete = true;
    while let Some(frame) = rest.frame().await {
        let frame = frame.map_err(|_| Error::Send(SendError::Interrupted))?;
        start.extend_from_slice(&frame.into_data().unwrap_or_default());
        if start.len() > SEARCHED_BYTES_MAX {
            is_complete = false;
            break;
        }
    }
    let start = start.freeze();
    if withheld.has_numbers() {
        remove_digests(&mut head.headers);
    }
    let received = BufferedResponse {
        status: head.status,
        headers: head.headers.clone(),
        body: Sensitive::new(start.to_vec()),
    };
    if withheld.are_in(&received) || (withheld.has_numbers() && !is_complete) {
        return Err(Error::ResponseWithheld);
    }
    match is_complete {
        true => Ok(complete(received)),
        false => {
            let start = stream::once(async { Ok(Frame::data(start)) });
            let body = StreamBody::new(start.chain(BodyStream::new(rest)));
            Ok(streamed(http::Response::from_parts(head, body)))
        }
    }
}

/// Removes digests of what the destination received: a caller could compute those of its guesses.
fn remove_digests(headers: &mut HeaderMap) {
    const NAMES: [&str; 6] = [
        "etag",
        "content-md5",
        "digest",
        "content-digest",
        "repr-digest",
        "x-goog-hash",
    ];
    let is_digest = |name: &str| NAMES.contains(&name) || name.starts_with("x-amz-checksum-");
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names.iter().filter(|name| is_digest(name.as_str())) {
        headers.remove(name);
    }
}

/// The response for a caller without a key, which may be a browser that follows a link: it neither redirects nor asks for a
/// password in the name of the vault.
pub(super) fn without_navigation(mut response: Response) -> Response {
    for name in [LOCATION, WWW_AUTHENTICATE] {
        response.headers_mut().remove(name);
    }
    response
}

/// The headers of a response for the caller.
fn returned(status: u16, received: &HeaderMap) -> HeaderMap {
    let named = named_by_connection(received);
    let mut headers = HeaderMap::with_capacity(received.len() + 3);
    for (name, value) in received {
        if is_returned(name) && !named.contains(name) {
            headers.append(name, value.clone());
        }
    }
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(DESTINATION_STATUS, HeaderValue::from(status));
    headers
}

fn is_returned(name: &HeaderName) -> bool {
    let text = name.as_str();
    !is_hop_by_hop(name)
        && !is_own(name)
        && !REMOVED.contains(name)
        && !REMOVED_NAMES.contains(&text)
        && !REMOVED_PREFIXES
            .iter()
            .any(|prefix| text.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_act_on_our_origin_are_removed() {
        let mut received = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("content-length", "2"),
            ("location", "https://api.example.com/next"),
            ("x-request-id", "a"),
            ("x-request-id", "b"),
            ("retry-after", "3"),
            ("cache-control", "public, max-age=600"),
            ("set-cookie", "a=b"),
            ("access-control-allow-origin", "*"),
            ("bt-proxy-destination-status", "200"),
            ("bt-trace-id", "forged"),
            ("strict-transport-security", "max-age=0"),
            ("clear-site-data", "*"),
            ("service-worker-allowed", "/"),
            ("nel", "{}"),
            ("x-accel-redirect", "/internal"),
            ("x-sendfile", "/etc/passwd"),
            ("surrogate-control", "max-age=1"),
            ("cdn-cache-control", "max-age=1"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("server", "nginx"),
        ] {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            received.append(name, value.parse().unwrap());
        }
        let returned = returned(402, &received);
        let mut lines: Vec<String> = returned
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "bt-proxy-destination-status: 402",
                "cache-control: no-store",
                "content-length: 2",
                "content-security-policy: sandbox; default-src 'none'",
                "content-type: application/json",
                "location: https://api.example.com/next",
                "retry-after: 3",
                "x-request-id: a",
                "x-request-id: b",
            ]
        );
    }
}
