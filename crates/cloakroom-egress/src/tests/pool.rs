//! Reuse of connections.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use tokio::io::AsyncWriteExt as _;

use super::harness::{
    Authority, Client, Server, ServerTls, body_text, empty, read_head, respond, tenant,
};
use crate::{Destination, SendError};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async fn start(authority: &Authority, response: &'static str) -> Server {
    let tls = ServerTls::new(&authority.issue("psp.example"));
    Server::start(tls, move |stream| respond(stream, response)).await
}

#[tokio::test]
async fn a_connection_is_reused_when_its_response_was_read() {
    let authority = Authority::new();
    let server = start(&authority, OK).await;
    let client = Client::new(&authority, &server);

    for _ in 0..20 {
        assert_eq!(client.get_text().await.as_deref(), Ok("ok"));
    }

    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_connection_is_closed_when_its_response_was_not_read() {
    let authority = Authority::new();
    let server = start(&authority, OK).await;
    let client = Client::new(&authority, &server);

    drop(client.get().await.unwrap());
    assert_eq!(client.get_text().await.as_deref(), Ok("ok"));

    assert_eq!(server.connections(), 2);
}

/// The buffers of a connection keep what was received last.
#[tokio::test]
async fn a_connection_is_closed_when_its_response_has_a_card_number() {
    let authority = Authority::new();
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n4242424242424242",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Card: 4242424242424242\r\n\r\nok",
    ] {
        let server = start(&authority, response).await;
        let client = Client::new(&authority, &server);

        for _ in 0..3 {
            client.get_text().await.unwrap();
        }

        assert_eq!(server.connections(), 3, "{response}");
    }
}

#[tokio::test]
async fn connections_are_not_shared_between_tenants() {
    let authority = Authority::new();
    let server = start(&authority, OK).await;
    let client = Client::new(&authority, &server);

    for number in [1, 2, 1, 2] {
        let response = client.get_as(tenant(number)).await.unwrap();
        assert_eq!(body_text(response).await.as_deref(), Ok("ok"));
    }

    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_connection_is_not_reused_after_a_sensitive_head() {
    let authority = Authority::new();
    let server = start(&authority, OK).await;
    let client = Client::new(&authority, &server);
    let destination = Destination {
        has_sensitive_head: true,
        ..client.destination()
    };

    for _ in 0..3 {
        let sent = client.egress.send(destination, empty(), &client.timeouts);
        assert_eq!(body_text(sent.await.unwrap()).await.as_deref(), Ok("ok"));
    }

    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_connection_is_not_reused_when_the_destination_closes_it() {
    let authority = Authority::new();
    let closing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = start(&authority, closing).await;
    let client = Client::new(&authority, &server);

    for _ in 0..3 {
        assert_eq!(client.get_text().await.as_deref(), Ok("ok"));
    }

    assert_eq!(server.connections(), 3);
}

/// A destination that sends two responses to one request cannot pass the second to the next request.
#[tokio::test]
async fn an_unsolicited_response_is_never_returned() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            let twice = format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
            if stream.write_all(twice.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    })
    .await;
    let client = Client::new(&authority, &server);

    for _ in 0..20 {
        assert_eq!(client.get_text().await.as_deref(), Ok("ok"));
    }

    assert_eq!(server.connections(), 20);
}

/// The server closes each connection when it gets a second request. Such a request may have been processed.
#[tokio::test]
async fn a_request_that_was_sent_is_never_sent_again() {
    let authority = Authority::new();
    for method in [Method::POST, Method::GET] {
        let tls = ServerTls::new(&authority.issue("psp.example"));
        let server = Server::start(tls, |mut stream| async move {
            read_head(&mut stream).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            read_head(&mut stream).await;
            let _ = stream.shutdown().await;
        })
        .await;
        let client = Client::new(&authority, &server);
        assert_eq!(client.get_text().await.as_deref(), Ok("ok"));

        let mut request = empty();
        *request.method_mut() = method;
        let sent = client
            .egress
            .send(client.destination(), request, &client.timeouts)
            .await;

        assert_eq!(sent.err(), Some(SendError::Interrupted));
        assert_eq!(server.connections(), 1);
    }
}

/// The pooled connection is found closed before anything is written, so even a POST request uses another one.
#[tokio::test]
async fn a_closed_connection_is_replaced() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        let _ = stream.shutdown().await;
    })
    .await;
    let client = Client::new(&authority, &server);

    for _ in 0..10 {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.method_mut() = Method::POST;
        let sent = client
            .egress
            .send(client.destination(), request, &client.timeouts)
            .await;
        assert_eq!(body_text(sent.unwrap()).await.as_deref(), Ok("ok"));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    assert_eq!(server.connections(), 10);
}
