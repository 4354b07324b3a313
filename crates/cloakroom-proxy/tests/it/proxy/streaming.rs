//! Bodies that are streamed.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Fixture;
use super::destination::Behavior;

const HUGE: u64 = 100 * 1024 * 1024;
const PART: usize = 64 * 1024;
/// Growth of the whole process: client, vault and destination.
const GROWTH_KB_MAX: u64 = 20 * 1024;

/// Sends a request with a body of `length` bytes that ends with `end`; returns head and body of the response, and the
/// number of bytes of the body.
async fn send(fixture: &Fixture, media: &str, length: u64, end: &[u8]) -> (String, Vec<u8>, u64) {
    let address = fixture.vault.base_url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /proxy/upload HTTP/1.1\r\nhost: v\r\nbt-api-key: {}\r\nbt-proxy-url: {}\r\n\
         content-type: {media}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
        fixture.client.key().unwrap(),
        fixture.destination.url(),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let write = async {
        let part = vec![b'a'; PART];
        let mut left = length - end.len() as u64;
        while left > 0 {
            let size = left.min(PART as u64) as usize;
            if writer.write_all(&part[..size]).await.is_err() {
                return;
            }
            left -= size as u64;
        }
        let _ = writer.write_all(end).await;
    };
    let read = async {
        let (mut kept, mut total, mut buffer) = (Vec::new(), 0, vec![0; PART]);
        while let Ok(read @ 1..) = reader.read(&mut buffer).await {
            total += read as u64;
            if kept.len() < PART {
                kept.extend_from_slice(&buffer[..read]);
            }
        }
        (kept, total)
    };
    let ((), (kept, total)) = tokio::join!(write, read);
    let at = kept.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(kept[..at].to_vec()).unwrap();
    (head, kept[at..].to_vec(), total - at as u64)
}

/// The memory of this process.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The largest growth of the memory of this process while `work` runs.
async fn growth_kb<T>(work: impl Future<Output = T>) -> (T, u64) {
    let before = resident_kb();
    let mut most = before;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return (result, most - before),
            () = tokio::time::sleep(Duration::from_millis(5)) => most = most.max(resident_kb()),
        }
    }
}

#[tokio::test]
async fn a_large_request_is_streamed_with_its_length() {
    let fixture = Fixture::with(Behavior::Count, |_| {}).await;

    let sent = send(&fixture, "application/json", HUGE, b"}");
    let ((head, ..), growth) = growth_kb(sent).await;

    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(fixture.destination.counted(), HUGE);
    let received = fixture.destination.only();
    assert_eq!(received.header("content-length"), HUGE.to_string());
    assert_eq!(received.header("transfer-encoding"), "");
    println!("{} MB sent, {growth} kB of memory", HUGE >> 20);
    assert!(growth < GROWTH_KB_MAX, "{growth} kB");
}

#[tokio::test]
async fn a_large_response_is_streamed_with_its_length() {
    let behavior = Behavior::respond(|_| {
        let parts = (0..HUGE / PART as u64).map(|_| Ok::<_, std::io::Error>(vec![b'a'; PART]));
        let body = Body::from_stream(futures_util::stream::iter(parts));
        let response = http::Response::builder().header("content-length", HUGE);
        response.body(body).unwrap()
    });
    let fixture = Fixture::with(behavior, |_| {}).await;

    let sent = send(&fixture, "text/plain", 1, b"x");
    let ((head, _, length), growth) = growth_kb(sent).await;

    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        head.contains(&format!("content-length: {HUGE}\r\n")),
        "{head}"
    );
    assert_eq!(length, HUGE);
    println!("{} MB received, {growth} kB of memory", HUGE >> 20);
    assert!(growth < GROWTH_KB_MAX, "{growth} kB");
}

/// An expression is never sent in place of its value.
#[tokio::test]
async fn an_expression_in_a_large_body_is_rejected() {
    let large = 3 * 1024 * 1024;
    for (media, end, is_rejected) in [
        ("application/json", b"\"{{ id }}\"".as_slice(), true),
        ("text/plain", b"{{ id", false),
        (
            "application/x-www-form-urlencoded",
            b"&a=%7B%7B+id+%7D%7D",
            true,
        ),
        ("text/plain", b"&a=%7B%7B+id+%7D%7D", false),
        ("application/octet-stream", b"{{ id }}", false),
    ] {
        let fixture = Fixture::start().await;
        let (head, body, _) = send(&fixture, media, large, end).await;

        let case = format!("{media} {}", String::from_utf8_lossy(end));
        let complete = fixture.destination.received().len();
        match is_rejected {
            true => {
                assert!(head.starts_with("HTTP/1.1 400"), "{case}: {head}");
                let body: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(
                    body["proxy_error"]["code"], "expression_in_large_body",
                    "{case}"
                );
                assert_eq!(complete, 0, "{case}");
            }
            false => {
                assert!(head.starts_with("HTTP/1.1 200"), "{case}: {head}");
                assert_eq!(complete, 1, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn bodies_have_a_maximum_size() {
    let fixture = Fixture::with(Behavior::ok(), |config| {
        config.proxy.max_body_bytes = 2 * 1024 * 1024;
    })
    .await;
    let (head, ..) = send(&fixture, "text/plain", 3 * 1024 * 1024, b"").await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert_eq!(fixture.destination.connections(), 0);

    let request = fixture.client.request(http::Method::POST, "/proxy");
    let request = request.header("bt-proxy-url", fixture.destination.url());
    let within = fixture
        .client
        .send(request.body(vec![b'a'; 2 * 1024 * 1024]))
        .await;
    assert_eq!(within.status, StatusCode::OK, "{}", within.body);
}
