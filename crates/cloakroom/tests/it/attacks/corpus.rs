//! Requests that parsers read differently, and what a strict one reads.
//!
//! Characters stand for bytes, so that `\u{ff}` is one byte; `{S}` is the
//! length of the second request. Behind each comes a whole second request,
//! which is answered only where a strict reader finds it.

use Seen::{Both, First, InStep, Inside, Never, Refused};

/// What comes of a request with another one behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seen {
    /// The first is refused, and the connection closed.
    Refused,
    /// The first is answered on its merits; what follows is part of it, or the connection is closed.
    First,
    /// Two requests, two answers.
    Both,
    /// One of `Refused` and `Both`: the second is a request of its own to everyone.
    InStep,
    /// The second is the body of the first, which is answered on its merits.
    Inside,
    /// The second is not answered, whatever becomes of the first.
    Never,
}

/// Headers behind a good request line and a good host, and what stands where a body would.
pub(super) const HEADERS: &[(&str, &str, Seen)] = &[
    // Two ways to say where it ends.
    (
        "content-length: 6\r\ntransfer-encoding: chunked",
        "0\r\n\r\nX",
        Refused,
    ),
    (
        "transfer-encoding: chunked\r\ncontent-length: 3",
        "5\r\nabcde\r\n0\r\n\r\n",
        Refused,
    ),
    (
        "content-length: 0\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        Refused,
    ),
    (
        "Content-Length: 5\r\nTRANSFER-ENCODING: CHUNKED",
        "0\r\n\r\n",
        Refused,
    ),
    (
        "content-length: 5\r\ntransfer-encoding: identity",
        "abcde",
        Refused,
    ),
    ("content-length: 5\r\ntransfer-encoding:", "abcde", Refused),
    // Codings that some take for chunked and others do not.
    (
        "transfer-encoding: chunked\r\ntransfer-encoding: x",
        "0\r\n\r\n",
        Refused,
    ),
    (
        "transfer-encoding: x\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        Refused,
    ),
    (
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        Refused,
    ),
    ("transfer-encoding: chunked, chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked, identity", "0\r\n\r\n", Refused),
    ("transfer-encoding: identity, chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: gzip, chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: identity", "", Refused),
    ("transfer-encoding: xchunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunkedx", "0\r\n\r\n", Refused),
    ("transfer-encoding: \"chunked\"", "0\r\n\r\n", Refused),
    ("transfer-encoding: 'chunked'", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked;q=1", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked,", "0\r\n\r\n", Refused),
    ("transfer-encoding: ,chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding:", "0\r\n\r\n", Refused),
    ("transfer-encoding:\u{b}chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: \u{c}chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked\u{a0}", "0\r\n\r\n", Refused),
    ("transfer-encoding: ch\u{fc}nked", "0\r\n\r\n", Refused),
    ("transfer-encoding : chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding\t: chunked", "0\r\n\r\n", Refused),
    (" transfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("x: y\r\n transfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("x: y\r\n\ttransfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding:\r\n chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked\rx: y", "0\r\n\r\n", Refused),
    ("x: y\rtransfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("x: y\ntransfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("\u{0}transfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding\u{0}: chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked\u{0}", "0\r\n\r\n", Refused),
    (": chunked", "", Refused),
    ("transfer-encoding", "", Refused),
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
    ("content-length: 0\r\ncontent-length: 0", "", Refused),
    ("content-length: 5\r\ncontent-length: 0", "abcde", Refused),
    ("Content-Length: 5\r\nconTENT-lENGTH: 6", "abcde", Refused),
    ("content-length: 5, 5", "abcde", Refused),
    ("content-length: 5,", "abcde", Refused),
    ("content-length: +5", "abcde", Refused),
    ("content-length: -1", "", Refused),
    ("content-length: -0", "", Refused),
    ("content-length: 0x5", "abcde", Refused),
    ("content-length: 5.0", "abcde", Refused),
    ("content-length: 5e0", "abcde", Refused),
    ("content-length: 1_0", "abcdefghij", Refused),
    ("content-length:", "", Refused),
    ("content-length: 5 5", "abcde", Refused),
    ("content-length: 5;x", "abcde", Refused),
    ("content-length: \"5\"", "abcde", Refused),
    ("content-length: \u{b}5", "abcde", Refused),
    ("content-length: 5\u{0}", "abcde", Refused),
    ("content-length: \u{b2}", "ab", Refused),
    ("content-length: 18446744073709551615", "", Refused),
    ("content-length: 18446744073709551616", "", Refused),
    ("content-length: 18446744073709551621", "abcde", Refused),
    (
        "content-length: 99999999999999999999999999999999",
        "",
        Refused,
    ),
    ("content-length : 5", "abcde", Refused),
    ("content-length\t: 5", "abcde", Refused),
    ("content-length:\r\n 5", "abcde", Refused),
    ("content-length: 5\r\n 0", "abcde", Refused),
    ("content-length: 5\r", "abcde", Refused),
    ("content-length: 5\nx: y", "abcde", Refused),
    ("content-length: 0005", "abcde", Both),
    ("content-length:5\t ", "abcde", Both),
    ("content-length: 5\r\ncontent_length: 0", "abcde", Both),
    ("content-length: 2", "{}", Both),
    ("content-length: 0", "", Both),
    ("content-length: {S}", "", Inside),
    // Hosts, upgrades and expectations.
    ("host: other", "", Refused),
    ("HOST: h", "", Refused),
    ("host : other", "", Refused),
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
    ("expect: 100-continue\r\ncontent-length: 5", "abcde", InStep),
    ("expect: 100-continue", "", InStep),
    ("expect: 200-ok\r\ncontent-length: 5", "abcde", InStep),
    (
        "expect: 100-continue\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        First,
    ),
    // Ends of heads.
    ("x: y\r\n\n", "", Refused),
    ("x: y\n", "", Refused),
    ("x: y\r\r\n", "", Refused),
];

/// What stands where chunks would. None may let the second request be seen, because the connection
/// ends with a chunked one.
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

/// Whole beginnings of a connection.
pub(super) const WHOLE: &[(&str, Seen)] = &[
    // Versions.
    ("GET /ping\r\n", Never),
    ("GET /ping\r\n\r\n", Never),
    ("GET /ping HTTP/0.9\r\nHost: h\r\n\r\n", Refused),
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
    ("GET /ping HTTP/1.2\r\nHost: h\r\n\r\n", Refused),
    ("GET /ping HTTP/2.0\r\nHost: h\r\n\r\n", Refused),
    ("GET /ping HTTP/01.1\r\nHost: h\r\n\r\n", Refused),
    ("GET /ping http/1.1\r\nHost: h\r\n\r\n", Refused),
    ("GET /ping HTTP/1.1 \r\nHost: h\r\n\r\n", Refused),
    ("GET /ping HTTP/1.1\r\r\nHost: h\r\n\r\n", Refused),
    ("PRI * HTTP/2.0\r\nHost: h\r\n\r\n", Refused),
    ("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", Refused),
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        Never,
    ),
    // Request lines.
    ("GET  /ping HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    ("GET\t/ping\tHTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    (" GET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    ("GET /ping\u{0} HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    ("GET /pi\rng HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    ("G\u{c9}T /ping HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    ("get /ping HTTP/1.1\r\nHost: h\r\n\r\n", Both),
    ("GET /ping%0d%0aX:%20y HTTP/1.1\r\nHost: h\r\n\r\n", Both),
    ("GET /ping HTTP/1.1\nHost: h\n\n", Refused),
    ("\r\nGET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Both),
    ("\nGET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    ("\rGET /ping HTTP/1.1\r\nHost: h\r\n\r\n", Refused),
    // Targets that name another host.
    ("GET http://other/ping HTTP/1.1\r\nHost: h\r\n\r\n", InStep),
    (
        "GET http://h@other/ping HTTP/1.1\r\nHost: h\r\n\r\n",
        InStep,
    ),
    ("GET http://other/ping HTTP/1.1\r\n\r\n", Refused),
    ("GET other:80 HTTP/1.1\r\nHost: h\r\n\r\n", InStep),
    ("CONNECT other:443 HTTP/1.1\r\nHost: h\r\n\r\n", InStep),
    (
        "CONNECT other:443 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde",
        InStep,
    ),
    ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", InStep),
    ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", InStep),
    ("GET ping HTTP/1.1\r\nHost: h\r\n\r\n", InStep),
    // Hosts.
    ("GET /ping HTTP/1.1\r\n\r\n", Refused),
    ("GET /ping HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", Refused),
    ("GET /ping HTTP/1.1\r\nHost : h\r\n\r\n", Refused),
    ("GET /ping HTTP/1.1\r\nHo\u{0}st: h\r\n\r\n", Refused),
    ("GET /ping HTTP/1.1\r\nHost: h\r\n other\r\n\r\n", Refused),
    // Bodies where few expect them.
    (
        "GET /ping HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde",
        Both,
    ),
    (
        "HEAD /ping HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde",
        InStep,
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
    // Behind a good one.
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
