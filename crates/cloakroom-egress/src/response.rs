//! The response: its head is checked, its body is streamed within time limits.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cloakroom_platform::card_numbers::StreamDetector;
use cloakroom_platform::telemetry::catalog;
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

/// A streamed body without its trailers. When it was read to its end, its connection is reused; dropping it earlier closes
/// the connection.
///
/// A response with a card number also closes its connection: the TLS library would keep the number in the connection's
/// buffer until later responses overwrite it. Freed memory is wiped.
pub struct ResponseBody {
    incoming: Incoming,
    card_numbers: StreamDetector,
    /// Called at the end of the body to reuse the connection.
    finish: Option<Box<dyn FnOnce() + Send + Sync>>,
    limits: BodyLimits,
    /// Wakes a reader that waits. It is set while the destination is silent.
    silence: Option<Pin<Box<Sleep>>>,
}

/// Time limits of a response body.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) idle: Duration,
    pub(crate) deadline: Instant,
}

/// Why a body ended early. The response is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the destination stopped sending its response")]
    Timeout,
    #[error("the connection to the destination was closed within its response")]
    Interrupted,
}

impl BodyError {
    /// Name for logs and metrics.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Timeout => "response_timeout",
            Self::Interrupted => "response_interrupted",
        }
    }
}

/// Whether a response head is unambiguous.
///
/// It must not switch protocols, and its length must be given in one way: two parsers that choose different ones see
/// different responses.
pub(crate) fn is_valid(response: &Response<Incoming>) -> bool {
    response.status() != StatusCode::SWITCHING_PROTOCOLS && has_one_length(response.headers())
}

fn has_one_length(headers: &HeaderMap) -> bool {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => lengths <= 1,
        (Some(encoding), None) => {
            lengths == 0 && encoding.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
        (Some(_), Some(_)) => false,
    }
}

impl ResponseBody {
    /// Wraps the body of a response.
    pub(crate) fn wrap(
        response: Response<Incoming>,
        limits: BodyLimits,
        finish: Box<dyn FnOnce() + Send + Sync>,
    ) -> Response<Self> {
        let mut card_numbers = StreamDetector::default();
        for value in response.headers().values() {
            card_numbers.feed(value.as_bytes());
            card_numbers.finish();
        }
        response.map(|incoming| {
            let mut body = Self {
                incoming,
                card_numbers,
                finish: Some(finish),
                limits,
                silence: None,
            };
            if body.incoming.is_end_stream() {
                body.finish();
            }
            body
        })
    }

    fn finish(&mut self) {
        if let Some(finish) = self.finish.take()
            && !self.card_numbers.finish()
        {
            finish();
        }
    }

    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let limits = self.limits;
        let silence = self.silence.get_or_insert_with(|| {
            let until = Instant::now() + limits.idle;
            Box::pin(sleep_until(until.min(limits.deadline)))
        });
        silence.as_mut().poll(context)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut frame = Pin::new(&mut self.incoming).poll_frame(context);
        // No filter of headers has seen the trailers. They are the last frame.
        while let Poll::Ready(Some(Ok(last))) = &frame
            && let Some(trailers) = last.trailers_ref()
        {
            for value in trailers.values() {
                self.card_numbers.feed(value.as_bytes());
            }
            frame = Pin::new(&mut self.incoming).poll_frame(context);
        }
        let failure = match frame {
            Poll::Ready(None) => {
                self.finish();
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Ok(frame))) if Instant::now() < self.limits.deadline => {
                self.silence = None;
                if let Some(data) = frame.data_ref() {
                    self.card_numbers.feed(data);
                }
                if self.incoming.is_end_stream() {
                    self.finish();
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Poll::Ready(Some(Ok(_))) => BodyError::Timeout,
            Poll::Ready(Some(Err(_))) => BodyError::Interrupted,
            Poll::Pending => match self.poll_silence(context) {
                Poll::Ready(()) => BodyError::Timeout,
                Poll::Pending => return Poll::Pending,
            },
        };
        // The connection is closed with what it holds.
        self.finish = None;
        catalog::EGRESS_RESPONSES_INCOMPLETE
            .with([failure.kind()])
            .increment(1);
        Poll::Ready(Some(Err(failure)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_response_is_given_in_one_way() {
        let cases: [(&[(&str, &str)], bool); 7] = [
            (&[], true),
            (&[("content-length", "5")], true),
            (&[("transfer-encoding", "Chunked")], true),
            (&[("content-length", "5"), ("content-length", "5")], false),
            (
                &[("content-length", "5"), ("transfer-encoding", "chunked")],
                false,
            ),
            (&[("transfer-encoding", "gzip, chunked")], false),
            (
                &[
                    ("transfer-encoding", "gzip"),
                    ("transfer-encoding", "chunked"),
                ],
                false,
            ),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            assert_eq!(has_one_length(&headers), expected, "{lines:?}");
        }
    }
}
