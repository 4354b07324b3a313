//! Response bodies: sent in pieces, each counted until it is sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::usage::{Charge, Client};

/// Memory of a pending response besides its body: its task, and the state of its stream.
const OVERHEAD_BYTES: usize = 4 * 1024;
/// A client must read this much within `http.write_timeout`, or all that remains.
const PIECE_BYTES: usize = 32 * 1024;

tokio::task_local! {
    /// Progress of the response of this HTTP/2 stream.
    pub(super) static PROGRESS: Arc<Progress>;
}

/// When a client could last read more of its response.
#[derive(Default)]
pub(super) struct Progress {
    /// `None` until there is a response with a body, and while its source has no more data yet.
    last: Mutex<Option<Instant>>,
    started: Notify,
}

impl Progress {
    fn advance(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.replace(Instant::now()).is_none() {
            self.started.notify_one();
        }
    }

    /// Stops the clock: the response waits for its source, not for the client.
    fn suspend(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Completes when a response has made no progress for `timeout`, while data waits for the client.
    pub(super) async fn stalled(&self, timeout: Duration) {
        loop {
            let last = || *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = last();
            match seen {
                None => self.started.notified().await,
                Some(at) => {
                    sleep_until(at + timeout).await;
                    if last() == seen {
                        return;
                    }
                }
            }
        }
    }
}

/// The memory that a body takes before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyMemory {
    /// All of its bytes.
    Owned,
    /// None of its own: all responses share the bytes.
    Shared,
    /// Only the bytes that have arrived from elsewhere.
    Streamed,
}

/// A body that is sent in pieces, and counts as unsent for its client.
///
/// The bytes of a shared body take no memory of their own, and are not counted.
pub(super) fn paced(body: Body, client: &Arc<Client>, memory: BodyMemory) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let size = match memory {
        BodyMemory::Shared | BodyMemory::Streamed => 0,
        BodyMemory::Owned => usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX),
    };
    let progress = PROGRESS.try_with(Arc::clone).ok();
    if let Some(progress) = &progress {
        progress.advance();
    }
    Body::new(PacedBody {
        charge: client.charge(size.saturating_add(OVERHEAD_BYTES)),
        is_shared: memory == BodyMemory::Shared,
        inner: body,
        rest: Bytes::new(),
        progress,
    })
}

struct PacedBody {
    inner: Body,
    /// Data of the inner body that is not sent yet.
    rest: Bytes,
    charge: Charge,
    is_shared: bool,
    progress: Option<Arc<Progress>>,
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(progress) = &self.progress {
            progress.advance();
        }
        if self.rest.is_empty() {
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) else {
                if let Some(progress) = &self.progress {
                    progress.suspend();
                }
                return Poll::Pending;
            };
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let bytes = self.rest.split_to(length);
        let bytes = match self.is_shared {
            true => bytes,
            false => Bytes::from_owner(Piece {
                bytes,
                _charge: self.charge.split(length),
            }),
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Bytes that count as unsent until the protocol drops them.
struct Piece {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
