//! Request heads: timeouts, size, and request smuggling.

use std::time::{Duration, Instant};

use cloakroom_platform::config::Http;
use tokio::io::AsyncWriteExt as _;

use super::{KEEP_ALIVE_REQUEST, Node, REQUEST, exchange, read_all, send_request, settings};

#[tokio::test]
async fn slow_heads_time_out() {
    let header_timeout = Duration::from_millis(200);
    let node = Node::start(Http {
        header_timeout,
        ..settings()
    })
    .await;
    let beginnings = [
        "",
        "G",
        "GET /peer HTTP/1.1\r\nhost: h\r\nx-a: b",
        "PRI * HTTP",
        "PRI",
    ];
    for beginning in beginnings {
        let mut stream = node.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();

        let started = Instant::now();
        let response = read_all(&mut stream).await;

        assert!(started.elapsed() < Duration::from_secs(2), "{beginning:?}");
        assert!(!response.contains("200 OK"), "{beginning:?}: {response}");
    }
}

#[tokio::test]
async fn slow_second_heads_time_out() {
    let header_timeout = Duration::from_millis(200);
    let node = Node::start(Http {
        header_timeout,
        ..settings()
    })
    .await;
    let mut stream = node.connect().await;
    let response = send_request(&mut stream, KEEP_ALIVE_REQUEST).await;
    stream
        .write_all(b"GET /peer HTTP/1.1\r\nx-a: b")
        .await
        .unwrap();

    let started = Instant::now();
    let rest = read_all(&mut stream).await;

    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(rest, "");
}

#[tokio::test]
async fn connections_outlive_the_header_timeout() {
    let header_timeout = Duration::from_millis(50);
    let node = Node::start(Http {
        header_timeout,
        ..settings()
    })
    .await;
    let mut stream = node.connect().await;
    stream
        .write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.started.notified().await;

    tokio::time::sleep(3 * header_timeout).await;
    node.released.notify_one();
    let response = read_all(&mut stream).await;

    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
}

#[tokio::test]
async fn large_heads_are_rejected() {
    let node = Node::start(settings()).await;
    let mut stream = node.connect().await;
    let head = format!(
        "GET /peer HTTP/1.1\r\nhost: h\r\nx-a: {}\r\n\r\n",
        "a".repeat(17_000)
    );

    let response = exchange(&mut stream, &head).await;

    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[tokio::test]
async fn ambiguous_requests_cannot_smuggle_a_second_request() {
    let smuggled = REQUEST;
    let cases = [
        // Accepted; the connection is closed afterwards.
        ("transfer-encoding: chunked", "0\r\n\r\n", "200"),
        // Rejected.
        (
            "content-length: 100\r\ntransfer-encoding: chunked",
            "0\r\n\r\n",
            "400",
        ),
        (
            "transfer-encoding: chunked\r\ncontent-length: 5",
            "0\r\n\r\n",
            "400",
        ),
        ("content-length: 1\r\ncontent-length: 1", "a", "400"),
        ("x-a: b\nx-c: d", "", "400"),
        ("host: other", "", "400"),
        ("transfer-encoding: gzip, chunked", "0\r\n\r\n", "400"),
        (
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            "0\r\n\r\n",
            "400",
        ),
        ("transfer-encoding: identity", "", "400"),
        ("transfer-encoding:\x0bchunked", "0\r\n\r\n", "400"),
        ("content-length: 1\r\ncontent-length: 2", "a", "400"),
        ("content-length: +1", "a", "400"),
        ("content-length: 1, 1", "a", "400"),
        ("x-a: b\r\n c: d", "", "400"),
        ("x-a : b", "", "400"),
    ];
    for (headers, body, status) in cases {
        let node = Node::start(settings()).await;
        let mut stream = node.connect().await;
        let request =
            format!("POST /peer HTTP/1.1\r\nhost: h\r\n{headers}\r\n\r\n{body}{smuggled}");

        let response = exchange(&mut stream, &request).await;

        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{headers:?}: {response}"
        );
        assert_eq!(
            response.matches("HTTP/1.1").count(),
            1,
            "{headers:?}: {response}"
        );
    }
}
