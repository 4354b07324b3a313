//! Tests of ambiguous and valid heads, split at every byte.

use proptest::prelude::*;

use super::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn ambiguous_requests_are_rejected() {
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
            let rejected = rejected_from(stream.as_bytes(), piece);
            assert_eq!(
                rejected.is_none(),
                accepted,
                "{stream:?} in pieces of {piece}"
            );
        }
    }
}

#[test]
fn valid_requests_before_an_ambiguous_one_are_served() {
    let bad = "GET / HTTP/1.1\nHost: h\n\n";
    let posted = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na\nb";

    assert_eq!(
        rejected_from(format!("{GET}{bad}").as_bytes(), 10_000),
        Some(GET.len())
    );
    assert_eq!(
        rejected_from(format!("{posted}{bad}").as_bytes(), 10_000),
        Some(posted.len())
    );
}

proptest! {
    #[test]
    fn result_does_not_depend_on_chunking(
        stream in "(GET / HTTP/1.1\r?\n(Host: h\r\n)?(Content-Length: [0-3]\r\n){0,2}\r\n[a\n]{0,4}){0,4}",
        piece in 1_usize..40,
    ) {
        let whole = rejected_from(stream.as_bytes(), 100_000).is_some();
        prop_assert_eq!(rejected_from(stream.as_bytes(), piece).is_some(), whole);
    }
}
