//! Clients that hold resources: streams without a window, unread responses, idle connections.

use std::net::Ipv4Addr;
use std::time::Instant;

use tokio::net::TcpSocket;

use super::*;

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;

/// A received frame.
#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// An HTTP/2 client that misbehaves.
struct Http2 {
    stream: TcpStream,
}

impl Http2 {
    /// Connects with this window for each stream.
    async fn connect(node: &Node, window: u32) -> Self {
        let mut stream = node.connect().await;
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        let mut client = Self { stream };
        let mut settings = vec![0, 4];
        settings.extend(window.to_be_bytes());
        client.send(SETTINGS, 0, 0, &settings).await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame).await.unwrap();
    }

    async fn get(&mut self, stream: u32, path: &str) {
        let mut headers = Vec::new();
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "h"),
        ];
        for (name, value) in fields {
            headers.push(0);
            for text in [name, value] {
                headers.push(u8::try_from(text.len()).unwrap());
                headers.extend(text.bytes());
            }
        }
        self.send(HEADERS, END_STREAM_AND_HEADERS, stream, &headers)
            .await;
    }

    /// The next frame, after replying to pings; `None` once the server has closed the connection.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let frame = Frame {
                kind: head[3],
                flags: head[4],
                stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
                payload,
            };
            if frame.kind != PING || frame.flags & ACK != 0 {
                return Some(frame);
            }
            self.send(PING, ACK, 0, &frame.payload).await;
        }
    }

    /// Waits for a frame of this kind.
    async fn until(&mut self, kind: u8) -> Frame {
        let found = async {
            loop {
                let frame = self.next().await.expect("the connection ended");
                if frame.kind == kind {
                    return frame;
                }
            }
        };
        timeout(TIMEOUT, found)
            .await
            .expect("the expected frame did not arrive")
    }

    /// Waits until the server closes the connection, and returns the type of its last frame.
    async fn until_closed(&mut self) -> Option<u8> {
        let ended = async {
            let mut last = None;
            while let Some(frame) = self.next().await {
                last = Some(frame.kind);
            }
            last
        };
        timeout(TIMEOUT, ended)
            .await
            .expect("the connection stays open")
    }
}

/// Settings with a short write timeout.
fn short_timeout() -> Http {
    Http {
        write_timeout: Duration::from_millis(300),
        ..settings()
    }
}

#[tokio::test]
async fn streams_without_a_window_are_reset_and_others_continue() {
    let node = Node::start(short_timeout()).await;
    let mut client = Http2::connect(&node, 0).await;

    client.get(1, "/large").await;
    let headers = client.until(HEADERS).await;
    let reset = client.until(RST_STREAM).await;
    client.get(3, "/peer").await;
    let next = client.until(HEADERS).await;

    assert_eq!((headers.stream, reset.stream, next.stream), (1, 1, 3));
}

#[tokio::test]
async fn streams_with_a_full_window_are_reset() {
    let node = Node::start(short_timeout()).await;
    let mut client = Http2::connect(&node, 1000).await;

    client.get(1, "/large").await;
    let data = client.until(DATA).await;
    let reset = client.until(RST_STREAM).await;

    assert_eq!((data.payload.len(), reset.stream), (1000, 1));
}

/// A client that reads is not cut off because the source of the response pauses.
#[tokio::test]
async fn streams_whose_source_pauses_are_not_reset() {
    let node = Node::start(short_timeout()).await;
    let mut client = Http2::connect(&node, 65_535).await;

    client.get(1, "/pausing").await;
    let parts = [client.until(DATA).await, client.until(DATA).await];

    assert_eq!(parts.map(|part| part.payload), [b"part", b"part"]);
}

#[tokio::test]
async fn slow_readers_receive_the_whole_response() {
    let node = Node::start(Http {
        write_timeout: Duration::from_secs(5),
        ..settings()
    })
    .await;
    let mut stream = node.connect().await;
    stream
        .write_all(b"GET /large HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();

    let mut count = 0;
    let mut chunk = vec![0; 1024 * 1024];
    loop {
        match stream.read(&mut chunk).await.unwrap() {
            0 => break,
            read => count += read,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    assert!(count > LARGE_BYTES, "{count}");
}

#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    let node = Node::start(short_timeout()).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(node.address).await.unwrap();
    stream
        .write_all(b"GET /large HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();

    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut got = Vec::new();
    // A reset ends a connection as well as a close does.
    let ended = timeout(TIMEOUT, stream.read_to_end(&mut got)).await;

    assert!(ended.is_ok(), "the connection stays open");
    assert!(got.len() < LARGE_BYTES, "{}", got.len());
}

#[tokio::test]
async fn idle_http2_connections_are_closed_despite_ping_replies() {
    let node = Node::start(Http {
        header_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(500),
        ..settings()
    })
    .await;
    let mut client = Http2::connect(&node, 65_535).await;
    client.get(1, "/peer").await;

    assert_eq!(client.until_closed().await, Some(GOAWAY));
}

#[tokio::test]
async fn old_connections_close_after_their_running_requests() {
    let aged = || Http {
        header_timeout: Duration::from_millis(200),
        max_connection_age: Duration::from_millis(500),
        ..settings()
    };
    let node = Node::start(aged()).await;
    let mut client = Http2::connect(&node, 65_535).await;
    client.get(1, "/slow").await;
    node.started.notified().await;

    client.until(GOAWAY).await;
    node.released.notify_one();
    let headers = client.until(HEADERS).await;
    client.until_closed().await;
    let mut stream = node.connect().await;
    stream
        .write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.started.notified().await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    node.released.notify_one();
    let last = read_all(&mut stream).await;

    assert_eq!(headers.stream, 1);
    assert!(last.contains("connection: close\r\n"), "{last}");
}

#[tokio::test]
async fn connection_limits_are_per_address() {
    let node = Node::start(Http {
        max_connections: 8,
        ..settings()
    })
    .await;
    let mut connections = Vec::new();
    for _ in 0..2 {
        let mut stream = node.connect().await;
        let response = send_request(&mut stream, KEEP_ALIVE_REQUEST).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        connections.push(stream);
    }

    let rejected = exchange(&mut node.connect().await, REQUEST).await;
    let mut other = connect_from(&node, 2).await;
    let response = exchange(&mut other, REQUEST).await;
    connections.clear();
    let mut again = String::new();
    let started = Instant::now();
    while again.is_empty() && started.elapsed() < TIMEOUT {
        again = exchange(&mut node.connect().await, REQUEST).await;
    }

    assert_eq!(rejected, "");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(again.starts_with("HTTP/1.1 200 OK\r\n"), "{again}");
}

#[tokio::test]
async fn trusted_proxies_are_exempt_from_the_connection_limit() {
    let node = Node::start(Http {
        max_connections: 8,
        trusted_proxies: "127.0.0.1".parse().unwrap(),
        ..settings()
    })
    .await;
    let mut connections = Vec::new();
    for _ in 0..8 {
        let mut stream = node.connect().await;
        let response = send_request(&mut stream, KEEP_ALIVE_REQUEST).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        connections.push(stream);
    }
}

#[tokio::test]
async fn a_full_node_is_not_ready() {
    let readiness = Readiness::new(&[]);
    let node = Node::start_with(
        Http {
            max_connections: 4,
            ..settings()
        },
        &readiness,
    )
    .await;
    let is_ready = async |expected: bool| {
        let started = Instant::now();
        while readiness.snapshot().is_ready() != expected {
            assert!(started.elapsed() < TIMEOUT, "readiness stays {}", !expected);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };

    is_ready(true).await;
    let mut connections = Vec::new();
    for host in 2..6 {
        connections.push(connect_from(&node, host).await);
    }
    is_ready(false).await;
    connections.clear();
    is_ready(true).await;
}

#[tokio::test]
async fn unread_responses_block_only_their_client() {
    let node = Node::start(Http {
        write_timeout: Duration::from_secs(5),
        max_unsent_bytes_per_connection: 1024 * 1024,
        max_unsent_bytes_per_address: 2 * LARGE_BYTES,
        ..settings()
    })
    .await;
    let mut first = Http2::connect(&node, 0).await;
    first.get(1, "/large").await;
    first.until(HEADERS).await;
    let mut second = Http2::connect(&node, 0).await;
    second.get(1, "/large").await;
    second.until(HEADERS).await;

    let rejected = exchange(&mut node.connect().await, REQUEST).await;
    let response = exchange(&mut connect_from(&node, 2).await, REQUEST).await;
    drop((first, second));
    let started = Instant::now();
    let mut again = String::new();
    while !again.starts_with("HTTP/1.1 200 ") && started.elapsed() < TIMEOUT {
        again = exchange(&mut node.connect().await, REQUEST).await;
    }

    assert!(rejected.starts_with("HTTP/1.1 503 "), "{rejected}");
    assert!(rejected.contains("unread_responses"), "{rejected}");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(again.starts_with("HTTP/1.1 200 OK\r\n"), "{again}");
}

/// Connects from another address of this machine.
async fn connect_from(node: &Node, host: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let address = Ipv4Addr::new(127, 0, 0, host);
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    socket.connect(node.address).await.unwrap()
}
