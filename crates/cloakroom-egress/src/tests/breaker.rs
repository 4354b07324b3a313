//! Which failures open a circuit.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use super::harness::{Authority, Client, Server, ServerTls, read_head, tenant};
use crate::{NotSent, SendError};

const FAILURES_MAX: usize = 5;

#[tokio::test]
async fn refused_connections_open_the_circuit_of_one_tenant() {
    let authority = Authority::new();
    let server = Server::start_tcp(([127, 0, 0, 1], 0).into(), |_| async {}).await;
    let client = Client::new(&authority, &server);
    drop(server);
    tokio::task::yield_now().await;

    for _ in 0..FAILURES_MAX {
        let error = client.get_text().await.unwrap_err();
        assert!(matches!(
            error,
            SendError::NotSent(NotSent::Connect) | SendError::Tls
        ));
    }

    assert_eq!(client.get_text().await, Err(SendError::CircuitOpen));
    assert_ne!(
        client.get_as(tenant(2)).await.err(),
        Some(SendError::CircuitOpen)
    );
}

#[tokio::test]
async fn failed_handshakes_open_the_circuit() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("other.example"));
    let server = Server::start(tls, |_| async {}).await;
    let client = Client::new(&authority, &server);

    for _ in 0..FAILURES_MAX {
        assert_eq!(client.get_text().await, Err(SendError::Tls));
    }

    assert_eq!(client.get_text().await, Err(SendError::CircuitOpen));
    assert_eq!(server.connections(), FAILURES_MAX);
}

/// Outcomes of requests at the same time, and of one after them. One by one, each connection would reset the count.
async fn get_concurrently(client: Client) -> Vec<Result<String, SendError>> {
    let client = Arc::new(client);
    let mut requests = JoinSet::new();
    for _ in 0..3 * FAILURES_MAX {
        let client = client.clone();
        requests.spawn(async move { client.get_text().await });
    }
    let mut outcomes = requests.join_all().await;
    outcomes.push(client.get_text().await);
    outcomes
}

#[tokio::test]
async fn slow_and_missing_responses_do_not_open_the_circuit() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let server = Server::start(tls, |mut stream| async move {
        read_head(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let mut client = Client::new(&authority, &server);
    client.timeouts.head = Duration::from_millis(200);

    for outcome in get_concurrently(client).await {
        assert_eq!(outcome, Err(SendError::Timeout));
    }
}

#[tokio::test]
async fn invalid_and_interrupted_responses_do_not_open_the_circuit() {
    let authority = Authority::new();
    for (response, expected) in [
        ("garbage\r\n\r\n", SendError::BadResponse),
        ("", SendError::Interrupted),
    ] {
        let tls = ServerTls::new(&authority.issue("psp.example"));
        let server = Server::start(tls, move |mut stream| async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(response.as_bytes()).await;
            let _ = stream.shutdown().await;
        })
        .await;
        let client = Client::new(&authority, &server);

        for outcome in get_concurrently(client).await {
            assert_eq!(outcome, Err(expected));
        }
    }
}
