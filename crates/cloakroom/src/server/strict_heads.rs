//! Heads of HTTP/1.1 requests, looked at before the parser sees them: what it forgives is refused.
//!
//! A proxy in front of us may read a forgiven head differently, and then disagree about where one
//! request ends and the next begins. So a bare line feed, more than one length, a length beside a
//! transfer coding, and any number of hosts but one are turned into bytes that no parser accepts.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longer lines are the parser's to refuse; this only bounds what is remembered of one.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The first line of an HTTP/2 connection. Its frames have no such ambiguities.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// A stream whose HTTP/1.1 heads are checked as they come in.
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
        let was_refused = self.inspector.state == State::Refused;
        if let Some(from) = self.inspector.look(arrived) {
            spoil(&mut arrived[from..], was_refused);
        }
        Poll::Ready(Ok(()))
    }
}

/// Makes a head that the parser answers with 400, closing the connection.
///
/// It stands no zero byte anywhere, but looks for one only once it has seen the end of a head.
fn spoil(bytes: &mut [u8], is_spoiled_already: bool) {
    bytes.fill(b'\n');
    if let Some(first) = bytes.first_mut().filter(|_| !is_spoiled_already) {
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

/// Follows a connection from head to head.
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
    /// HTTP/2, or behind a chunked request, after which the server closes the connection.
    Unwatched,
    Refused,
}

/// What a head has said so far.
#[derive(Default)]
struct Head {
    has_begun: bool,
    is_http_1_1: bool,
    hosts: usize,
    codings: usize,
    lengths: usize,
    length: Option<u64>,
}

impl Inspector {
    /// Looks at what arrived; from the returned position on, it must not reach the parser.
    fn look(&mut self, arrived: &[u8]) -> Option<usize> {
        let mut head_start = 0;
        let mut at = 0;
        while at < arrived.len() {
            match self.state {
                State::Unwatched => return None,
                State::Refused => return Some(at),
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
                    if self.state == State::Refused {
                        return Some(head_start);
                    }
                    if !self.head.has_begun && self.state == State::Head && self.line.is_empty() {
                        head_start = at;
                    }
                }
            }
        }
        None
    }

    /// Takes bytes up to the end of a line, and acts on the line once it is whole.
    fn take_line(&mut self, bytes: &[u8]) -> usize {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            if self.line.len() > LINE_BYTES_MAX {
                self.state = State::Refused;
            }
            return bytes.len();
        };
        // Most lines arrive in one piece, and are looked at where they are.
        let line = match self.line.is_empty() {
            true => &bytes[..end],
            false => {
                self.line.extend_from_slice(&bytes[..end]);
                &self.line
            }
        };
        self.state = match line.strip_suffix(b"\r") {
            Some(line) => self.head.add(line),
            None => State::Refused,
        };
        self.line.clear();
        end + 1
    }
}

impl Head {
    /// Adds a line, and says what follows it.
    fn add(&mut self, line: &[u8]) -> State {
        if !self.has_begun {
            self.has_begun = !line.is_empty();
            self.is_http_1_1 = line.ends_with(b" HTTP/1.1");
            let is_http2 = line == HTTP2_PREFACE;
            return if is_http2 {
                State::Unwatched
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

    /// What follows the whole head: a body, another head, or nothing that may be read.
    fn end(self) -> State {
        let has_host = !self.is_http_1_1 || self.hosts == 1;
        match (self.lengths, self.codings, self.length) {
            _ if !has_host => State::Refused,
            (0, 0, _) | (1, 0, Some(0)) => State::Head,
            (0, 1, _) => State::Unwatched,
            (1, 0, Some(length)) => State::Body(length),
            _ => State::Refused,
        }
    }
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// From where on a stream is refused, if it comes in pieces of this size.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn refused_from(stream: &[u8], piece: usize) -> Option<usize> {
    let mut inspector = Inspector::default();
    stream
        .chunks(piece)
        .enumerate()
        .find_map(|(index, piece_bytes)| {
            inspector.look(piece_bytes).map(|from| index * piece + from)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

    #[test]
    fn what_parsers_may_read_differently_is_refused() {
        let post = |headers: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{headers}\r\n\r\nabcde");
        let cases = [
            (GET.to_owned(), true),
            (format!("\r\n{GET}{GET}"), true),
            (post("Content-Length: 5") + GET, true),
            (post("content-length:5"), true),
            (post("Transfer-Encoding: chunked"), true),
            ("GET / HTTP/1.0\r\n\r\n".to_owned(), true),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\n".to_owned(), true),
            (post("Content-Length: 5\r\nContent-Length: 5"), false),
            (
                post("Content-Length: 5\r\nTransfer-Encoding: chunked"),
                false,
            ),
            (
                post("Transfer-Encoding: chunked\r\nTRANSFER-ENCODING: chunked"),
                false,
            ),
            (post("Content-Length: +5"), false),
            (post("Content-Length: 5, 5"), false),
            (post("Content-Length:"), false),
            ("GET / HTTP/1.1\r\nHost: h\n\r\n".to_owned(), false),
            ("GET / HTTP/1.1\nHost: h\n\n".to_owned(), false),
            ("GET / HTTP/1.1\r\nHost: h\r\n\n".to_owned(), false),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), false),
            (
                "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n".to_owned(),
                false,
            ),
        ];
        for (stream, accepted) in cases {
            for piece in [1, 7, 10_000] {
                let refused = refused_from(stream.as_bytes(), piece);
                assert_eq!(
                    refused.is_none(),
                    accepted,
                    "{stream:?} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn a_good_request_before_a_bad_one_still_counts() {
        let bad = "GET / HTTP/1.1\nHost: h\n\n";
        let posted = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na\nb";

        assert_eq!(
            refused_from(format!("{GET}{bad}").as_bytes(), 10_000),
            Some(GET.len())
        );
        assert_eq!(
            refused_from(format!("{posted}{bad}").as_bytes(), 10_000),
            Some(posted.len())
        );
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            stream in "(GET / HTTP/1.1\r?\n(Host: h\r\n)?(Content-Length: [0-3]\r\n){0,2}\r\n[a\n]{0,4}){0,4}",
            piece in 1_usize..40,
        ) {
            let whole = refused_from(stream.as_bytes(), 100_000).is_some();
            prop_assert_eq!(refused_from(stream.as_bytes(), piece).is_some(), whole);
        }
    }
}
