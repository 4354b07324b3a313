//! Receives the body of a request: completely, if it is small enough for its expressions to be replaced, or as a stream.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use cloakroom_platform::api::ApiError;
use cloakroom_platform::config::Config;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::content::ContentKind;
use super::error::Error;
use super::scanner::Scanner;

/// Limits of request bodies.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Of a body whose expressions are replaced.
    pub(super) complete_bytes: usize,
    /// Of any body.
    pub(super) max_bytes: usize,
    /// For receiving a complete body, or the first part of a streamed one.
    pub(super) timeout: Duration,
}

impl Limits {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            complete_bytes: config.proxy.max_replaced_bytes,
            max_bytes: config.proxy.max_body_bytes,
            timeout: config.http.body_timeout,
        }
    }
}

/// A streamed body may take this long at any rate.
const SLOW_START: Duration = Duration::from_secs(10);
/// After that, a caller must send at this rate on average: until the body has ended, it takes a share of the destination.
const MIN_BYTES_PER_SECOND: u64 = 4 * 1024;

pub(super) enum ReceivedBody {
    Complete(Bytes),
    /// A larger body, of which the first part has been received.
    Streamed(StreamedBody),
}

impl ReceivedBody {
    /// The body, unless it is streamed.
    pub(super) fn complete(&self) -> Option<Bytes> {
        match self {
            Self::Complete(bytes) => Some(bytes.clone()),
            Self::Streamed(_) => None,
        }
    }
}

/// Receives a body up to the limit. A body that is announced as larger is not received at all yet.
pub(super) async fn receive(body: Body, limits: Limits) -> Result<ReceivedBody, Error> {
    let announced = body.size_hint().exact();
    let limit = limits.max_bytes;
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(Error::BodyTooLarge(limit));
    }
    if announced.is_some_and(|length| length > limits.complete_bytes as u64) {
        let start = Bytes::new();
        return Ok(ReceivedBody::Streamed(StreamedBody::new(
            start, body, announced, limits,
        )));
    }
    let received = tokio::time::timeout(limits.timeout, receive_start(body, announced, limits));
    received.await.map_err(|_| ApiError::body_too_slow())?
}

async fn receive_start(
    mut body: Body,
    announced: Option<u64>,
    limits: Limits,
) -> Result<ReceivedBody, Error> {
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let was_sent = false;
        let frame = frame.map_err(|_| Error::IncompleteBody { was_sent })?;
        // Trailers are about this connection, like the headers that announce them.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if received.is_empty() && body.is_end_stream() && data.len() <= limits.complete_bytes {
            return Ok(ReceivedBody::Complete(data));
        }
        received.extend_from_slice(&data);
        if received.len() > limits.complete_bytes {
            let start = received.freeze();
            return Ok(ReceivedBody::Streamed(StreamedBody::new(
                start, body, announced, limits,
            )));
        }
    }
    Ok(ReceivedBody::Complete(received.freeze()))
}

/// A body that is sent as it arrives. It ends with an error if it contains an expression, which would otherwise reach
/// the destination instead of its value.
pub(super) struct StreamedBody {
    start: Option<Bytes>,
    rest: Body,
    /// Of the whole body, if it is announced.
    length: Option<u64>,
    passed: u64,
    wait: CallerWait,
    limits: Limits,
    /// `None` for a body whose expressions are not replaced whatever its size.
    scanner: Option<Scanner>,
    fault: Arc<OnceLock<BodyFault>>,
}

/// Why a streamed body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFault {
    #[error("the body has an expression")]
    Expression,
    #[error("the body is too large")]
    TooLarge,
    #[error("the body was not received completely")]
    Incomplete,
}

impl StreamedBody {
    fn new(start: Bytes, rest: Body, length: Option<u64>, limits: Limits) -> Self {
        Self {
            start: Some(start).filter(|start| !start.is_empty()),
            rest,
            length,
            passed: 0,
            wait: CallerWait::default(),
            limits,
            scanner: None,
            fault: Arc::default(),
        }
    }

    /// Rejects expressions in this body: at once in the part that has been received, later in what follows.
    pub(super) fn reject_expressions(&mut self, kind: ContentKind) -> Result<(), Error> {
        if kind == ContentKind::Binary {
            return Ok(());
        }
        let mut scanner = Scanner::new(kind == ContentKind::Form);
        if self.start.as_ref().is_some_and(|start| scanner.find(start)) {
            return Err(self.error(BodyFault::Expression, false));
        }
        // The received part has been searched; the state continues with what follows.
        self.scanner = Some(scanner);
        Ok(())
    }

    /// Shows, after the request failed, whether its body was the reason.
    pub(super) fn fault(&self) -> FaultReport {
        FaultReport {
            fault: Arc::clone(&self.fault),
            limits: self.limits,
        }
    }

    fn error(&self, fault: BodyFault, was_sent: bool) -> Error {
        fault.into_error(self.limits, was_sent)
    }

    /// Checks a part that has arrived.
    fn check(&mut self, data: &Bytes, is_start: bool) -> Result<(), BodyFault> {
        self.passed += data.len() as u64;
        if self.passed > self.limits.max_bytes as u64 {
            return Err(BodyFault::TooLarge);
        }
        let scanner = self.scanner.as_mut().filter(|_| !is_start);
        match scanner.is_some_and(|scanner| scanner.find(data)) {
            true => Err(BodyFault::Expression),
            false => Ok(()),
        }
    }
}

impl BodyFault {
    fn into_error(self, limits: Limits, was_sent: bool) -> Error {
        match self {
            Self::Expression => Error::ExpressionInLargeBody {
                limit: limits.complete_bytes,
                was_sent,
            },
            Self::TooLarge => Error::BodyTooLarge(limits.max_bytes),
            Self::Incomplete => Error::IncompleteBody { was_sent },
        }
    }
}

/// What happened to a body that is being sent.
pub(super) struct FaultReport {
    fault: Arc<OnceLock<BodyFault>>,
    limits: Limits,
}

impl FaultReport {
    pub(super) fn error(&self) -> Option<Error> {
        let fault = self.fault.get()?;
        Some(fault.into_error(self.limits, true))
    }
}

/// The time that a body waited for its caller. Time that the destination takes to accept it does not count.
#[derive(Default)]
struct CallerWait {
    since: Option<Instant>,
    total: Duration,
}

impl CallerWait {
    fn start(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    fn end(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_duration_since(since);
        }
    }

    /// Whether a body of which `passed` bytes have arrived is below the minimum rate.
    fn is_too_slow(&self, passed: u64) -> bool {
        let seconds = self.total.saturating_sub(SLOW_START).as_secs();
        passed < seconds * MIN_BYTES_PER_SECOND
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let (data, is_start) = match self.start.take() {
            Some(start) => (start, true),
            None => loop {
                let Poll::Ready(frame) = Pin::new(&mut self.rest).poll_frame(context) else {
                    self.wait.start(Instant::now());
                    return Poll::Pending;
                };
                self.wait.end(Instant::now());
                if self.wait.is_too_slow(self.passed) {
                    let _ = self.fault.set(BodyFault::Incomplete);
                    return Poll::Ready(Some(Err(BodyFault::Incomplete)));
                }
                match frame {
                    None => return Poll::Ready(None),
                    Some(Err(_)) => {
                        let _ = self.fault.set(BodyFault::Incomplete);
                        return Poll::Ready(Some(Err(BodyFault::Incomplete)));
                    }
                    // Trailers are dropped.
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            break (data, false);
                        }
                    }
                }
            },
        };
        Poll::Ready(Some(match self.check(&data, is_start) {
            Ok(()) => Ok(Frame::data(data)),
            Err(fault) => {
                let _ = self.fault.set(fault);
                Err(fault)
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.start.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            Some(length) => SizeHint::with_exact(length.saturating_sub(self.passed)),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_minimum_rate_while_it_waits_for_its_caller() {
        let start = Instant::now();
        let seconds = Duration::from_secs;
        let mut wait = CallerWait::default();

        wait.start(start);
        wait.start(start + seconds(5));
        wait.end(start + seconds(10));
        assert!(!wait.is_too_slow(0));
        // The destination does not read for a minute.
        wait.start(start + seconds(70));
        wait.end(start + seconds(71));
        assert!(wait.is_too_slow(MIN_BYTES_PER_SECOND - 1));
        assert!(!wait.is_too_slow(MIN_BYTES_PER_SECOND));
    }
}
