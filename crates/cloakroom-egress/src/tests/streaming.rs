//! Bodies pass through without being held in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::harness::{Authority, Client, Server, ServerTls, body_text, read_head};
use crate::SendError;

const CHUNK: usize = 64 * 1024;
const MEGABYTE: u64 = 1024 * 1024;
const SIZE: u64 = 100 * MEGABYTE;
const GROWTH_MAX: u64 = 20 * MEGABYTE;

/// A body of `left` zero bytes, which fails at its end if `fails`.
struct Zeros {
    left: u64,
    /// The size that the body claims to have.
    declared: Option<u64>,
    fails: bool,
    produced: Arc<AtomicU64>,
}

impl Zeros {
    fn new(size: u64) -> Self {
        Self {
            left: size,
            declared: Some(size),
            fails: false,
            produced: Arc::default(),
        }
    }
}

impl Body for Zeros {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            let error = std::io::ErrorKind::ConnectionReset.into();
            return Poll::Ready(self.fails.then_some(Err(error)));
        }
        let size = self.left.min(CHUNK as u64);
        self.left -= size;
        self.produced.fetch_add(size, Ordering::SeqCst);
        let chunk = vec![0; usize::try_from(size).unwrap()];
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        self.declared
            .map_or(SizeHint::default(), SizeHint::with_exact)
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

fn post(body: Zeros) -> Request<Zeros> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    request
}

/// Reads a body of `SIZE` bytes and responds with another one.
async fn start_echo(authority: &Authority) -> Server {
    let tls = ServerTls::new(&authority.issue("psp.example"));
    Server::start(tls, |mut stream| async move {
        let head = read_head(&mut stream).await;
        assert!(
            head.contains(&format!("\r\nContent-Length: {SIZE}\r\n")),
            "{head}"
        );
        let mut buffer = vec![0; CHUNK];
        let mut left = SIZE;
        while left > 0 {
            left -= stream.read(&mut buffer).await.unwrap() as u64;
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..SIZE / CHUNK as u64 {
            stream.write_all(&buffer).await.unwrap();
        }
        stream.flush().await.unwrap();
        let _ = stream.read(&mut buffer).await;
    })
    .await
}

#[tokio::test]
async fn large_bodies_take_little_memory() {
    let authority = Authority::new();
    let server = start_echo(&authority).await;
    let client = Client::new(&authority, &server);
    let before = resident_bytes();
    let mut most = before;

    let request = post(Zeros::new(SIZE));
    let sent = client
        .egress
        .send(client.destination(), request, &client.timeouts);
    let mut body = sent.await.unwrap().into_body();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        received += frame.unwrap().into_data().unwrap().len() as u64;
        most = most.max(resident_bytes());
    }

    assert_eq!(received, SIZE);
    let growth = most - before;
    assert!(growth < GROWTH_MAX, "{} MB", growth / MEGABYTE);
}

/// A reader that waits stops the destination, instead of filling memory.
#[tokio::test]
async fn a_slow_reader_slows_the_destination_down() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let written = Arc::new(AtomicU64::new(0));
    let count = written.clone();
    let server = Server::start(tls, move |mut stream| {
        let count = count.clone();
        async move {
            read_head(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            while stream.write_all(&[0; CHUNK]).await.is_ok() {
                count.fetch_add(CHUNK as u64, Ordering::SeqCst);
            }
        }
    })
    .await;
    let client = Client::new(&authority, &server);

    let response = client.get().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;

    assert!(written.load(Ordering::SeqCst) < GROWTH_MAX);
    drop(response);
}

/// A destination that stops reading stops the upload, which then counts as no progress.
#[tokio::test]
async fn an_upload_that_stalls_times_out() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        read_head(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.head = Duration::from_millis(300);
    let body = Zeros::new(SIZE);
    let produced = body.produced.clone();

    let sent = client
        .egress
        .send(client.destination(), post(body), &client.timeouts)
        .await;

    assert_eq!(sent.err(), Some(SendError::Timeout));
    assert!(produced.load(Ordering::SeqCst) < GROWTH_MAX);
}

/// An upload that takes longer than the limit for the response head is no timeout while it makes progress.
#[tokio::test]
async fn a_slow_upload_is_no_timeout() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let size = 32 * MEGABYTE;
    // What the kernel may buffer is read at full speed, so that the last part is sent late.
    let read_fast = 12 * MEGABYTE;
    let server = Server::start(tls, move |mut stream| async move {
        read_head(&mut stream).await;
        let mut buffer = vec![0; CHUNK];
        let mut left = size;
        while left > 0 {
            left -= stream.read(&mut buffer).await.unwrap() as u64;
            if left > read_fast {
                tokio::time::sleep(Duration::from_millis(6)).await;
            }
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await
            .unwrap();
        stream.flush().await.unwrap();
        let _ = stream.read(&mut buffer).await;
    })
    .await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.head = Duration::from_millis(1_200);

    let started = Instant::now();
    let sent = client
        .egress
        .send(
            client.destination(),
            post(Zeros::new(size)),
            &client.timeouts,
        )
        .await;

    assert_eq!(body_text(sent.unwrap()).await.as_deref(), Ok("ok"));
    assert!(started.elapsed() > client.timeouts.head);
}

#[tokio::test]
async fn a_request_body_that_fails_is_reported() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        let mut buffer = vec![0; CHUNK];
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    let client = Client::new(&authority, &server);
    for declared in [Some(2 * CHUNK as u64), None] {
        let mut body = Zeros::new(CHUNK as u64);
        body.declared = declared;
        body.fails = true;

        let sent = client
            .egress
            .send(client.destination(), post(body), &client.timeouts)
            .await;

        assert_eq!(sent.err(), Some(SendError::RequestBody));
    }
}

/// A destination that responds before it has read the request keeps no upload running without a permit.
#[tokio::test]
async fn an_early_response_ends_the_upload() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await
            .unwrap();
        stream.flush().await.unwrap();
        // Slow enough that the upload would take minutes.
        let mut buffer = vec![0; CHUNK];
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let client = Client::new(&authority, &server);
    let body = Zeros::new(100 * SIZE);
    let produced = body.produced.clone();

    let sent = client
        .egress
        .send(client.destination(), post(body), &client.timeouts);
    assert_eq!(body_text(sent.await.unwrap()).await.as_deref(), Ok("ok"));

    tokio::time::sleep(Duration::from_millis(200)).await;
    let at_end = produced.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(produced.load(Ordering::SeqCst), at_end);
}
