//! Checks the heads of HTTP/1.1 requests before the parser, and rejects what the parser tolerates.
//!
//! A proxy in front of this node may parse such a head differently, and then disagree about where
//! one request ends and the next begins (request smuggling). So a bare line feed, more than one
//! Content-Length, a Content-Length with a Transfer-Encoding, and any number of Host headers but
//! one are replaced by bytes that no parser accepts.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The parser rejects long lines; this only bounds the memory for one.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The first line of an HTTP/2 connection. Its frames have no such ambiguities.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// A stream whose HTTP/1.1 heads are checked as they arrive.
pub(super) struct StrictHeads<I> {
    inner: I,
    inspector: Inspector,
}

impl<I> StrictHeads<I> {
    pub(super) fn new(inner: I) -> Self {
        Self {
            inner,
            inspector: Inspector::default(),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for StrictHeads<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let arrived = &mut buffer.filled_mut()[before..];
        let was_rejected = self.inspector.state == State::Rejected;
        if let Some(from) = self.inspector.inspect(arrived) {
            invalidate(&mut arrived[from..], was_rejected);
        }
        Poll::Ready(Ok(()))
    }
}

/// Overwrites a head, so that the parser responds with 400 and closes the connection.
///
/// The parser accepts no NUL byte anywhere, but checks for one only at the end of a head.
fn invalidate(bytes: &mut [u8], is_already_invalid: bool) {
    bytes.fill(b'\n');
    if let Some(first) = bytes.first_mut().filter(|_| !is_already_invalid) {
        *first = 0;
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for StrictHeads<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Tracks a connection from head to head.
#[derive(Default)]
struct Inspector {
    state: State,
    line: Vec<u8>,
    head: Head,
}

#[derive(Default, PartialEq)]
enum State {
    #[default]
    Head,
    Body(u64),
    /// HTTP/2, or after a chunked request, whose response closes the connection.
    Unchecked,
    Rejected,
}

/// The head so far.
#[derive(Default)]
struct Head {
    has_started: bool,
    is_http_1_1: bool,
    hosts: usize,
    codings: usize,
    lengths: usize,
    length: Option<u64>,
}

impl Inspector {
    /// Checks arrived bytes; those from the returned position on must not reach the parser.
    fn inspect(&mut self, arrived: &[u8]) -> Option<usize> {
        let mut head_start = 0;
        let mut at = 0;
        while at < arrived.len() {
            match self.state {
                State::Unchecked => return None,
                State::Rejected => return Some(at),
                State::Body(left) => {
                    let taken = usize::try_from(left)
                        .map_or(arrived.len() - at, |left| left.min(arrived.len() - at));
                    at += taken;
                    head_start = at;
                    self.state = match left - taken as u64 {
                        0 => State::Head,
                        left => State::Body(left),
                    };
                }
                State::Head => {
                    at += self.take_line(&arrived[at..]);
                    if self.state == State::Rejected {
                        return Some(head_start);
                    }
                    if !self.head.has_started && self.state == State::Head && self.line.is_empty() {
                        head_start = at;
                    }
                }
            }
        }
        None
    }

    /// Consumes bytes up to the end of a line, and processes the line once it is complete.
    fn take_line(&mut self, bytes: &[u8]) -> usize {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            if self.line.len() > LINE_BYTES_MAX {
                self.state = State::Rejected;
            }
            return bytes.len();
        };
        // Most lines arrive in one piece and need no copy.
        let line = match self.line.is_empty() {
            true => &bytes[..end],
            false => {
                self.line.extend_from_slice(&bytes[..end]);
                &self.line
            }
        };
        self.state = match line.strip_suffix(b"\r") {
            Some(line) => self.head.add(line),
            None => State::Rejected,
        };
        self.line.clear();
        end + 1
    }
}

impl Head {
    /// Adds a line, and returns the next state.
    fn add(&mut self, line: &[u8]) -> State {
        if !self.has_started {
            self.has_started = !line.is_empty();
            self.is_http_1_1 = line.ends_with(b" HTTP/1.1");
            let is_http2 = line == HTTP2_PREFACE;
            return if is_http2 {
                State::Unchecked
            } else {
                State::Head
            };
        }
        if line.is_empty() {
            return std::mem::take(self).end();
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.codings += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            self.length = parse_length(value);
        }
        State::Head
    }

    /// The state after a complete head: a body, another head, or rejected.
    fn end(self) -> State {
        let has_host = !self.is_http_1_1 || self.hosts == 1;
        match (self.lengths, self.codings, self.length) {
            _ if !has_host => State::Rejected,
            (0, 0, _) | (1, 0, Some(0)) => State::Head,
            (0, 1, _) => State::Unchecked,
            (1, 0, Some(length)) => State::Body(length),
            _ => State::Rejected,
        }
    }
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// The position from which a stream is rejected, if it arrives in pieces of this size.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn rejected_from(stream: &[u8], piece: usize) -> Option<usize> {
    let mut inspector = Inspector::default();
    stream
        .chunks(piece)
        .enumerate()
        .find_map(|(index, piece_bytes)| {
            inspector
                .inspect(piece_bytes)
                .map(|from| index * piece + from)
        })
}

#[cfg(test)]
mod tests;
