//! Draining: running requests finish, and no new ones are accepted.

use std::time::Duration;

use cloakroom_platform::config::Http;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Node, read_all, settings};

#[tokio::test]
async fn draining_finishes_running_requests_and_accepts_none() {
    let mut node = Node::start(settings()).await;
    let mut slow = node.connect().await;
    slow.write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.started.notified().await;
    let mut idle = node.connect().await;

    node.stop();
    let silence = read_all(&mut idle).await;
    let refused = TcpStream::connect(node.address).await.is_err();
    let still_running = !node.running.is_finished();
    node.released.notify_one();
    let response = read_all(&mut slow).await;
    let ended = timeout(Duration::from_secs(2), &mut node.running).await;

    assert_eq!(silence, "");
    assert!(refused);
    assert!(still_running);
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("done"),
        "{response}"
    );
    assert!(ended.is_ok());
}

#[tokio::test]
async fn draining_ends_even_with_a_hanging_request() {
    let drain_timeout = Duration::from_millis(50);
    let mut node = Node::start(Http {
        drain_timeout,
        ..settings()
    })
    .await;
    let mut stuck = node.connect().await;
    stuck
        .write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.started.notified().await;

    node.stop();
    let ended = timeout(Duration::from_secs(2), &mut node.running).await;

    assert!(ended.is_ok());
    assert_eq!(read_all(&mut stuck).await, "");
}
