//! The upstream proxy.

use std::sync::{Arc, Mutex};

use cloakroom_platform::config::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::harness::{Authority, Client, Server, ServerTls, respond};
use crate::{AddressClass, Denied, NotSent, SendError};

/// Heads of the CONNECT requests.
type Requests = Arc<Mutex<Vec<String>>>;

/// A proxy that connects to the address it is given, after `response`.
async fn start_proxy(response: &'static str) -> (Server, Requests) {
    let requests = Requests::default();
    let seen = requests.clone();
    let proxy = Server::start_tcp(([127, 0, 0, 1], 0).into(), move |mut stream| {
        let seen = seen.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let target = head.split(' ').nth(1).unwrap().to_owned();
            seen.lock().unwrap().push(head);
            stream.write_all(response.as_bytes()).await.unwrap();
            let mut upstream = TcpStream::connect(target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
        }
    })
    .await;
    (proxy, requests)
}

async fn get_through(
    proxy: &Server,
    credentials: &str,
    private_networks: &str,
) -> (Result<String, SendError>, Server) {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::start(tls, move |stream| respond(stream, response)).await;
    let client = Client::with(&authority, &server, |config| {
        let url = format!("http://{credentials}{}", proxy.address);
        config.egress.connect_proxy = Some(Secret::new(url));
        config.egress.allow_private_networks = private_networks.parse().unwrap();
    });
    (client.get_text().await, server)
}

#[tokio::test]
async fn the_proxy_connects_to_the_checked_address() {
    let (proxy, requests) = start_proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;

    let (outcome, server) = get_through(&proxy, "", "127.0.0.1").await;

    assert_eq!(outcome.as_deref(), Ok("ok"));
    let address = server.address;
    let expected = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert_eq!(*requests.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn credentials_of_the_proxy_are_sent_to_it() {
    let (proxy, requests) = start_proxy("HTTP/1.1 200 OK\r\nVia: x\r\n\r\n").await;

    let (outcome, _) = get_through(&proxy, "user:p%40ss@", "127.0.0.1").await;

    assert_eq!(outcome.as_deref(), Ok("ok"));
    let requests = requests.lock().unwrap();
    assert!(requests[0].contains("\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n"));
}

#[tokio::test]
async fn addresses_are_checked_before_the_proxy_is_asked() {
    let (proxy, _) = start_proxy("HTTP/1.1 200 OK\r\n\r\n").await;

    let (outcome, _) = get_through(&proxy, "", "10.0.0.0/8").await;

    let denied = Denied::Address(AddressClass::Loopback);
    assert_eq!(outcome, Err(SendError::Denied(denied)));
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn a_proxy_that_rejects_is_reported() {
    for response in [
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        "HTTP/1.1 502 Bad Gateway\r\n\r\n",
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nunexpected",
    ] {
        let (proxy, _) = start_proxy(response).await;
        let (outcome, _) = get_through(&proxy, "", "127.0.0.1").await;
        let expected = SendError::NotSent(NotSent::ConnectProxy);
        assert_eq!(outcome, Err(expected), "{response:?}");
    }
}
