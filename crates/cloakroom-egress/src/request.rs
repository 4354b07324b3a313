//! The request as it is sent: head, framing and a body that reports its progress.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{Method, Request, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::time::{Instant, sleep_until};

use crate::DestinationUrl;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Headers that would change the framing of the request, or the protocol.
const FRAMING: [HeaderName; 4] = [TRANSFER_ENCODING, TRAILER, TE, UPGRADE];

/// A streamed request body.
pub(crate) struct RequestBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    progress: Arc<Progress>,
}

/// How far the body of a request was sent.
pub(crate) struct Progress {
    started_at: Instant,
    /// Time of the last part, in milliseconds after the start.
    last_ms: AtomicU64,
    has_failed: AtomicBool,
    /// Whether the body was dropped: it was sent completely, or its connection is closed.
    has_ended: AtomicBool,
}

/// Makes `request` a request to `url`: origin-form URI, `Host`, and a framing that matches the body.
pub(crate) fn prepare<B>(
    request: Request<B>,
    url: &DestinationUrl,
) -> (Request<RequestBody>, Arc<Progress>)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = request.into_parts();
    head.uri = Uri::from(url.path_and_query().clone());
    head.version = Version::HTTP_11;
    head.extensions = http::Extensions::new();
    set_framing(&mut head.headers, &head.method, &body);
    if let Ok(host) = HeaderValue::from_str(url.authority()) {
        head.headers.insert(HOST, host);
    }
    let progress = Arc::new(Progress {
        started_at: Instant::now(),
        last_ms: AtomicU64::new(0),
        has_failed: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
    });
    let body = RequestBody {
        inner: body.map_err(Into::into).boxed_unsync(),
        progress: Arc::clone(&progress),
    };
    (Request::from_parts(head, body), progress)
}

/// Sets `Content-Length` to the size of the body. If the body does not know its size, a valid header remains, which the
/// connection enforces; without one, the body is sent in chunks.
fn set_framing(headers: &mut HeaderMap, method: &Method, body: &impl Body) {
    for name in FRAMING {
        headers.remove(name);
    }
    let declared = declared_length(headers);
    headers.remove(CONTENT_LENGTH);
    let length = body.size_hint().exact().or(declared);
    let has_payload = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    match length {
        Some(0) if !has_payload => {}
        Some(length) => {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        None => {}
    }
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let value = values.next()?.to_str().ok()?;
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    match values.next() {
        None if is_number => value.parse().ok(),
        _ => None,
    }
}

impl Progress {
    /// Waits until no part of the body was sent for `limit`.
    pub(crate) async fn stall(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let until = self.started_at + last + limit;
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Whether the body itself returned an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Whether nothing of the body is left to send. A destination may respond earlier.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    fn record(&self) {
        let elapsed = self.started_at.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.last_ms.store(elapsed, Ordering::Relaxed);
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.progress.has_ended.store(true, Ordering::Release);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(frame) = &frame {
            self.progress.record();
            if matches!(frame, Some(Err(_))) {
                self.progress.has_failed.store(true, Ordering::Relaxed);
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full};

    use super::*;

    fn prepared<B>(method: Method, headers: &[(&'static str, &str)], body: B) -> String
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut request = Request::builder()
            .method(method)
            .uri("https://evil.example/x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let url = DestinationUrl::parse("https://a.example:8443/v1?k=1").unwrap();
        let (request, _) = prepare(request.body(body).unwrap(), &url);
        let mut lines = vec![format!("{} {}", request.method(), request.uri())];
        for (name, value) in request.headers() {
            lines.push(format!("{name}: {}", value.to_str().unwrap()));
        }
        lines[1..].sort_unstable();
        lines.join(", ")
    }

    /// A body that does not know its size.
    struct Unsized;

    impl Body for Unsized {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            Poll::Ready(None)
        }
    }

    #[test]
    fn the_framing_follows_the_body() {
        let full = || Full::new(Bytes::from_static(b"12345"));
        let stream = || Unsized;
        let empty = Empty::<Bytes>::new;
        let host = "host: a.example:8443";
        assert_eq!(
            prepared(Method::GET, &[("host", "evil.example")], empty()),
            format!("GET /v1?k=1, {host}")
        );
        assert_eq!(
            prepared(Method::POST, &[("content-length", "7")], empty()),
            format!("POST /v1?k=1, content-length: 0, {host}")
        );
        let smuggling = [
            ("content-length", "3"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("upgrade", "h2c"),
        ];
        assert_eq!(
            prepared(Method::POST, &smuggling, full()),
            format!("POST /v1?k=1, content-length: 5, {host}")
        );
        assert_eq!(
            prepared(Method::POST, &smuggling, stream()),
            format!("POST /v1?k=1, {host}")
        );
        assert_eq!(
            prepared(Method::POST, &[("content-length", "9")], stream()),
            format!("POST /v1?k=1, content-length: 9, {host}")
        );
        assert_eq!(
            prepared(Method::POST, &[("content-length", "+9")], stream()),
            format!("POST /v1?k=1, {host}")
        );
    }
}
