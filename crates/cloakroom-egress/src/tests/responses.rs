//! Destinations that respond with garbage, slowly, hugely or never.

use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use tokio::io::AsyncWriteExt as _;

use super::harness::{Authority, Client, Server, ServerTls, body_text, read_head, respond};
use crate::{BodyError, NotSent, SendError};

/// A server that reads a request, sends `parts` with a pause after each, and closes the connection.
async fn start(authority: &Authority, parts: Vec<(Vec<u8>, Duration)>) -> Server {
    let tls = ServerTls::new(&authority.issue("psp.example"));
    Server::start(tls, move |mut stream| {
        let parts = parts.clone();
        async move {
            read_head(&mut stream).await;
            for (bytes, pause) in parts {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
                tokio::time::sleep(pause).await;
            }
            let _ = stream.shutdown().await;
        }
    })
    .await
}

async fn get(authority: &Authority, response: impl Into<Vec<u8>>) -> Result<String, SendError> {
    let server = start(authority, vec![(response.into(), Duration::ZERO)]).await;
    Client::new(authority, &server).get_text().await
}

#[tokio::test]
async fn invalid_responses_are_rejected() {
    let authority = Authority::new();
    let headers = |count: usize| {
        let lines: String = (0..count).map(|n| format!("X-{n}: a\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok")
    };
    let long = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "a".repeat(70_000));
    let invalid = [
        "garbage\r\n\r\n",
        "\0\x01\x02\x03\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    let headers_max = headers(127);
    let too_many = headers(128);
    for response in invalid.into_iter().chain([&*too_many, &*long]) {
        let outcome = get(&authority, response).await;
        let start: String = response.chars().take(80).collect();
        assert_eq!(outcome, Err(SendError::BadResponse), "{start:?}");
    }
    assert_eq!(get(&authority, headers_max).await.as_deref(), Ok("ok"));
}

#[tokio::test]
async fn unusual_responses_that_are_valid_are_returned() {
    let authority = Authority::new();
    for (response, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"),
        (
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "ok",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "ok",
        ),
    ] {
        assert_eq!(get(&authority, response).await.as_deref(), Ok(expected));
    }
}

#[tokio::test]
async fn a_connection_closed_before_the_response_is_interrupted() {
    let authority = Authority::new();
    for response in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nA: b\r\n"] {
        let error = get(&authority, response).await.unwrap_err();
        assert_eq!(error, SendError::Interrupted, "{response:?}");
        assert!(error.was_sent());
    }
}

#[tokio::test]
async fn endless_headers_are_rejected() {
    let authority = Authority::new();
    let mut parts = vec![(b"HTTP/1.1 200 OK\r\nA: ".to_vec(), Duration::ZERO)];
    parts.extend(vec![(vec![b'a'; 16_384], Duration::ZERO); 1_000]);
    let server = start(&authority, parts).await;
    let outcome = Client::new(&authority, &server).get_text().await;
    assert_eq!(outcome, Err(SendError::BadResponse));
}

/// Each byte arrives in time, but not the head: progress of the response does not extend the limit.
#[tokio::test]
async fn a_slow_head_times_out() {
    let authority = Authority::new();
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let parts = bytes
        .iter()
        .map(|byte| (vec![*byte], Duration::from_millis(50)));
    let server = start(&authority, parts.collect()).await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.head = Duration::from_millis(300);

    let started = Instant::now();
    let error = client.get_text().await.unwrap_err();

    assert_eq!(error, SendError::Timeout);
    assert!(error.was_sent());
    assert!(started.elapsed() < Duration::from_millis(1_500));
}

#[tokio::test]
async fn endless_informational_responses_time_out() {
    let authority = Authority::new();
    let hint = (
        b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec(),
        Duration::from_millis(5),
    );
    let server = start(&authority, vec![hint; 2_000]).await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.head = Duration::from_millis(300);
    assert_eq!(client.get_text().await, Err(SendError::Timeout));
}

#[tokio::test]
async fn a_destination_that_never_responds_times_out() {
    let authority = Authority::new();
    let server = start(&authority, vec![(Vec::new(), Duration::from_secs(60))]).await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.head = Duration::from_millis(200);
    assert_eq!(client.get_text().await, Err(SendError::Timeout));

    let silent = Server::start_tcp(([127, 0, 0, 1], 0).into(), |stream| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let mut client = Client::new(&authority, &silent);
    client.timeouts.connect = Duration::from_millis(200);
    let error = client.get_text().await.unwrap_err();
    assert_eq!(error, SendError::NotSent(NotSent::ConnectTimeout));
    assert!(!error.was_sent());
}

#[tokio::test]
async fn an_incomplete_body_ends_with_an_error() {
    let authority = Authority::new();
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n123",
    ] {
        let server = start(&authority, vec![(response.into(), Duration::ZERO)]).await;
        let response = Client::new(&authority, &server).get().await.unwrap();
        assert_eq!(body_text(response).await, Err(BodyError::Interrupted));
    }
}

/// Without close_notify, the end of a body without a length may be the work of an attacker.
#[tokio::test]
async fn a_body_cut_off_below_tls_ends_with_an_error() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\namount=1")
            .await
            .unwrap();
        stream.flush().await.unwrap();
    })
    .await;
    let response = Client::new(&authority, &server).get().await.unwrap();
    assert_eq!(body_text(response).await, Err(BodyError::Interrupted));
}

#[tokio::test]
async fn a_body_that_stops_times_out() {
    let authority = Authority::new();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345".to_vec();
    let server = start(&authority, vec![(head, Duration::from_secs(60))]).await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.idle = Duration::from_millis(200);
    let response = client.get().await.unwrap();
    assert_eq!(body_text(response).await, Err(BodyError::Timeout));
}

#[tokio::test]
async fn a_body_that_never_ends_times_out() {
    let authority = Authority::new();
    let mut parts = vec![(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), Duration::ZERO)];
    parts.extend(vec![(b"12345".to_vec(), Duration::from_millis(20)); 1_000]);
    let server = start(&authority, parts).await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.total = Duration::from_millis(2_000);

    let started = Instant::now();
    let response = client.get().await.unwrap();
    let mut body = response.into_body();
    let error = loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the body ended"),
        }
    };

    assert_eq!(error, BodyError::Timeout);
    assert!(started.elapsed() < Duration::from_secs(6));
}

/// The limit also applies if the destination is fast and the client is slow.
#[tokio::test]
async fn a_slow_reader_does_not_extend_the_time_limit() {
    let authority = Authority::new();
    let mut parts = vec![(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), Duration::ZERO)];
    parts.extend(vec![(vec![b'a'; 65_536], Duration::ZERO); 1_000]);
    let server = start(&authority, parts).await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.total = Duration::from_millis(2_000);

    let mut body = client.get().await.unwrap().into_body();
    let mut failure = None;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        failure = body.frame().await.unwrap().err();
        if failure.is_some() {
            break;
        }
    }

    assert_eq!(failure, Some(BodyError::Timeout));
}

#[tokio::test]
async fn trailers_are_dropped() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n\
                    2\r\nok\r\n0\r\nX-Late: 1\r\n\r\n";
    let server = Server::start(tls, move |stream| respond(stream, response)).await;
    let client = Client::new(&authority, &server);

    let response = client.get().await.unwrap();
    let collected = response.into_body().collect().await.unwrap();

    assert!(collected.trailers().is_none());
    assert_eq!(collected.to_bytes(), "ok");
    // The connection is used again.
    client.get().await.unwrap();
    assert_eq!(server.connections(), 1);
}
