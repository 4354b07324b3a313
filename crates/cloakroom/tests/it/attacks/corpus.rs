//! Requests that HTTP parsers interpret differently, and the outcome with a strict parser.
//!
//! Characters represent bytes, so that `\u{ff}` is one byte; `{S}` is the length of the second request. A complete
//! second request follows each; it may be processed only where a strict parser sees it.

use Outcome::{Both, First, InSync, Inside, Never, Rejected};

/// The expected outcome of a request followed by a second one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The first request is rejected and the connection closed.
    Rejected,
    /// The first request is processed; the rest is part of it, or the connection is closed.
    First,
    /// Both requests are processed.
    Both,
    /// `Rejected` or `Both`: every parser sees the second as a separate request.
    InSync,
    /// The second request is the body of the first, which is processed.
    Inside,
    /// The second request gets no response, whatever the outcome of the first.
    Never,
}

/// Headers after a valid request line and host, and the bytes in place of the body.
pub(super) const HEADERS: &[(&str, &str, Outcome)] = &[
    // Conflicting lengths.
    (
        "content-length: 6\r\ntransfer-encoding: chunked",
        "0\r\n\r\nX",
        Rejected,
    ),
    (
        "transfer-encoding: chunked\r\ncontent-length: 3",
        "5\r\nabcde\r\n0\r\n\r\n",
        Rejected,
    ),
    (
        "content-length: 0\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        Rejected,
    ),
    (
        "Content-Length: 5\r\nTRANSFER-ENCODING: CHUNKED",
        "0\r\n\r\n",
        Rejected,
    ),
    (
        "content-length: 5\r\ntransfer-encoding: identity",
        "abcde",
        Rejected,
    ),
    ("content-length: 5\r\ntransfer-encoding:", "abcde", Rejected),
    // Codings that only some parsers treat as chunked.
    (
        "transfer-encoding: chunked\r\ntransfer-encoding: x",
        "0\r\n\r\n",
        Rejected,
    ),
    (
        "transfer-encoding: x\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        Rejected,
    ),
    (
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        Rejected,
    ),
    ("transfer-encoding: chunked, chunked", "0\r\n\r\n", Rejected),
    (
        "transfer-encoding: chunked, identity",
        "0\r\n\r\n",
        Rejected,
    ),
    (
        "transfer-encoding: identity, chunked",
        "0\r\n\r\n",
        Rejected,
    ),
    ("transfer-encoding: gzip, chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding: identity", "", Rejected),
    ("transfer-encoding: xchunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding: chunkedx", "0\r\n\r\n", Rejected),
    ("transfer-encoding: \"chunked\"", "0\r\n\r\n", Rejected),
    ("transfer-encoding: 'chunked'", "0\r\n\r\n", Rejected),
    ("transfer-encoding: chunked;q=1", "0\r\n\r\n", Rejected),
    ("transfer-encoding: chunked,", "0\r\n\r\n", Rejected),
    ("transfer-encoding: ,chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding:", "0\r\n\r\n", Rejected),
    ("transfer-encoding:\u{b}chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding: \u{c}chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding: chunked\u{a0}", "0\r\n\r\n", Rejected),
    ("transfer-encoding: ch\u{fc}nked", "0\r\n\r\n", Rejected),
    ("transfer-encoding : chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding\t: chunked", "0\r\n\r\n", Rejected),
    (" transfer-encoding: chunked", "0\r\n\r\n", Rejected),
    ("x: y\r\n transfer-encoding: chunked", "0\r\n\r\n", Rejected),
    (
        "x: y\r\n\ttransfer-encoding: chunked",
        "0\r\n\r\n",
        Rejected,
    ),
    ("transfer-encoding:\r\n chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding: chunked\rx: y", "0\r\n\r\n", Rejected),
    ("x: y\rtransfer-encoding: chunked", "0\r\n\r\n", Rejected),
    ("x: y\ntransfer-encoding: chunked", "0\r\n\r\n", Rejected),
    ("\u{0}transfer-encoding: chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding\u{0}: chunked", "0\r\n\r\n", Rejected),
    ("transfer-encoding: chunked\u{0}", "0\r\n\r\n", Rejected),
    (": chunked", "", Rejected),
    ("transfer-encoding", "", Rejected),
    ("transfer-encoding: CHUNKED", "0\r\n\r\n", First),
    ("transfer-encoding:\tchunked \t", "0\r\n\r\n", First),
    (
        "transfer-encoding: chunked\r\nconnection: keep-alive",
        "0\r\n\r\n",
        First,
    ),
    (
        "transfer-encoding: chunked\r\nconnection: transfer-encoding",
        "0\r\n\r\n",
        First,
    ),
    ("transfer_encoding: chunked", "", Both),
    ("te: chunked", "", Both),
    ("x: transfer-encoding: chunked", "", Both),
    // Lengths.
    ("content-length: 0\r\ncontent-length: 0", "", Rejected),
    ("content-length: 5\r\ncontent-length: 0", "abcde", Rejected),
    ("Content-Length: 5\r\nconTENT-lENGTH: 6", "abcde", Rejected),
    ("content-length: 5, 5", "abcde", Rejected),
    ("content-length: 5,", "abcde", Rejected),
    ("content-length: +5", "abcde", Rejected),
    ("content-length: -1", "", Rejected),
    ("content-length: -0", "", Rejected),
    ("content-length: 0x5", "abcde", Rejected),
    ("content-length: 5.0", "abcde", Rejected),
    ("content-length: 5e0", "abcde", Rejected),
    ("content-length: 1_0", "abcdefghij", Rejected),
    ("content-length:", "", Rejected),
    ("content-length: 5 5", "abcde", Rejected),
    ("content-length: 5;x", "abcde", Rejected),
    ("content-length: \"5\"", "abcde", Rejected),
    ("content-length: \u{b}5", "abcde", Rejected),
    ("content-length: 5\u{0}", "abcde", Rejected),
    ("content-length: \u{b2}", "ab", Rejected),
    ("content-length: 18446744073709551615", "", Rejected),
    ("content-length: 18446744073709551616", "", Rejected),
    ("content-length: 18446744073709551621", "abcde", Rejected),
    (
        "content-length: 99999999999999999999999999999999",
        "",
        Rejected,
    ),
    ("content-length : 5", "abcde", Rejected),
    ("content-length\t: 5", "abcde", Rejected),
    ("content-length:\r\n 5", "abcde", Rejected),
    ("content-length: 5\r\n 0", "abcde", Rejected),
    ("content-length: 5\r", "abcde", Rejected),
    ("content-length: 5\nx: y", "abcde", Rejected),
    ("content-length: 0005", "abcde", Both),
    ("content-length:5\t ", "abcde", Both),
    ("content-length: 5\r\ncontent_length: 0", "abcde", Both),
    ("content-length: 2", "{}", Both),
    ("content-length: 0", "", Both),
    ("content-length: {S}", "", Inside),
    // Hosts, upgrades and expectations.
    ("host: other", "", Rejected),
    ("HOST: h", "", Rejected),
    ("host : other", "", Rejected),
    ("connection: close", "", First),
    ("connection: close, keep-alive", "", First),
    (
        "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__",
        "",
        Both,
    ),
    (
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13",
        "",
        Both,
    ),
    ("expect: 100-continue\r\ncontent-length: 5", "abcde", InSync),
    ("expect: 100-continue", "", InSync),
    ("expect: 200-ok\r\ncontent-length: 5", "abcde", InSync),
    (
        "expect: 100-continue\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        First,
    ),
    // Ends of heads.
    ("x: y\r\n\n", "", Rejected),
    ("x: y\n", "", Rejected),
    ("x: y\r\r\n", "", Rejected),
];

/// Bytes in place of chunks. The second request gets no response, because the server closes the connection after a
/// chunked request.
pub(super) const CHUNKS: &[&str] = &[
    "0\r\n\r\n",
    "2\r\n{}\r\n0\r\n\r\n",
    "2;a=b\r\n{}\r\n0;c\r\n\r\n",
    "2;a=\"\r\n{}\r\n0\r\n\r\n",
    "2;a\n{}\r\n0\r\n\r\n",
    "2;a\rb\r\n{}\r\n0\r\n\r\n",
    "00000000000000000002\r\n{}\r\n0\r\n\r\n",
    "fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "10000000000000002\r\n{}\r\n0\r\n\r\n",
    "ffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "7fffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "+2\r\n{}\r\n0\r\n\r\n",
    "-2\r\n{}\r\n0\r\n\r\n",
    "0x2\r\n{}\r\n0\r\n\r\n",
    " 2\r\n{}\r\n0\r\n\r\n",
    "2 \r\n{}\r\n0\r\n\r\n",
    "2\t\r\n{}\r\n0\r\n\r\n",
    "2g\r\n{}\r\n0\r\n\r\n",
    "\r\n{}\r\n0\r\n\r\n",
    ";a\r\n{}\r\n0\r\n\r\n",
    "2\n{}\n0\n\n",
    "2\r{}\r0\r\r",
    "2\r\n{}0\r\n\r\n",
    "2\r\n{}X0\r\n\r\n",
    "2\r\n{}\r0\r\n\r\n",
    "2\r\n{}\n0\r\n\r\n",
    "2\r\n{}\r\n0\r\n\n",
    "2\r\n{}\r\n0\r\nx: y\r\n\r\n",
    "2\r\n{}\r\n0\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\nhost: other\r\nbt-api-key: x\r\n\r\n",
    "2\r\n{}\r\n0\r\nx: y\n\r\n",
    "2\r\n{}\r\n0\r\n x: y\r\n\r\n",
    "2\r\n{}\r\n0\r\n\u{0}\r\n\r\n",
];

/// Complete openings of a connection.
pub(super) const WHOLE: &[(&str, Outcome)] = &[
    // Versions.
    ("GET /ping\r\n", Never),
    ("GET /ping\r\n\r\n", Never),
    ("GET /ping HTTP/0.9\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.0\r\n\r\n", First),
    ("GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Both),
    (
        "POST /ping HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Never,
    ),
    (
        "POST /ping HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
        Never,
    ),
    (
        "POST /ping HTTP/1.0\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nabcde",
        Both,
    ),
    ("GET /ping HTTP/1.2\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/2.0\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/01.1\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping http/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.1 \r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.1\r\r\nHost: h\r\n\r\n", Rejected),
    ("PRI * HTTP/2.0\r\nHost: h\r\n\r\n", Rejected),
    ("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", Rejected),
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        Never,
    ),
    // Request lines.
    ("GET  /ping HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("GET\t/ping\tHTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    (" GET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping\u{0} HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("GET /pi\rng HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("G\u{c9}T /ping HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("get /ping HTTP/1.1\r\nHost: h\r\n\r\n", Both),
    ("GET /ping%0d%0aX:%20y HTTP/1.1\r\nHost: h\r\n\r\n", Both),
    ("GET /ping HTTP/1.1\nHost: h\n\n", Rejected),
    ("\r\nGET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Both),
    ("\nGET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    ("\rGET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Rejected),
    // Targets that name another host.
    ("GET http://other/ping HTTP/1.1\r\nHost: h\r\n\r\n", InSync),
    (
        "GET http://h@other/ping HTTP/1.1\r\nHost: h\r\n\r\n",
        InSync,
    ),
    ("GET http://other/ping HTTP/1.1\r\n\r\n", Rejected),
    ("GET other:80 HTTP/1.1\r\nHost: h\r\n\r\n", InSync),
    ("CONNECT other:443 HTTP/1.1\r\nHost: h\r\n\r\n", InSync),
    (
        "CONNECT other:443 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde",
        InSync,
    ),
    ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", InSync),
    ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", InSync),
    ("GET ping HTTP/1.1\r\nHost: h\r\n\r\n", InSync),
    // Hosts.
    ("GET /ping HTTP/1.1\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.1\r\nHost : h\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.1\r\nHo\u{0}st: h\r\n\r\n", Rejected),
    ("GET /ping HTTP/1.1\r\nHost: h\r\n other\r\n\r\n", Rejected),
    // Bodies of methods that usually have none.
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde",
        Both,
    ),
    (
        "HEAD /ping HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde",
        InSync,
    ),
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        First,
    ),
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\nContent-Length: {S}\r\n\r\n",
        Inside,
    ),
    (
        "HEAD /ping HTTP/1.1\r\nHost: h\r\nContent-Length: {S}\r\n\r\n",
        Inside,
    ),
    (
        "DELETE /ping HTTP/1.1\r\nHost: h\r\nContent-Length: {S}\r\n\r\n",
        Inside,
    ),
    (
        "OPTIONS /ping HTTP/1.1\r\nHost: h\r\nContent-Length: {S}\r\n\r\n",
        Inside,
    ),
    (
        "GET /nowhere HTTP/1.1\r\nHost: h\r\nContent-Length: {S}\r\n\r\n",
        Inside,
    ),
    (
        "GET /v2/tokens HTTP/1.1\r\nHost: h\r\nContent-Length: {S}\r\n\r\n",
        Inside,
    ),
    // After a valid request.
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\n\r\nGET /ping HTTP/1.1\nHost: h\n\n",
        Never,
    ),
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\n\r\nGET /ping HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
        Never,
    ),
    ("GET /ping HTTP/1.1\r\nHost: h\r\n\r\n0\r\n\r\n", Never),
];
