//! Clients without a key that try to exhaust a node's memory and connections.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Deployment, Node};

/// The maximum growth of a node's memory by an attack from one address.
const MEMORY_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Generous for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// HTTP/2 preface and settings of a client with a zero stream window, so that no response can be sent.
const PREFACE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn get(stream: u32, path: &str) -> Vec<u8> {
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
    frame(1, 5, stream, &headers)
}

fn address(node: &Node) -> SocketAddr {
    let address = node.base_url.strip_prefix("http://").unwrap();
    address.parse().unwrap()
}

/// The resident memory of a node, in bytes.
fn memory(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kilobytes * 1024
}

/// A metric without labels; 0 while there is none.
fn metric(node: &Node, name: &str) -> usize {
    let url = format!("{}/metrics", node.admin_url);
    let output = Command::new("curl").args(["-s", &url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |count| count.parse().unwrap())
}

/// The open connections in a node's metrics.
fn connections(node: &Node) -> usize {
    metric(node, "cloakroom_http_connections")
}

/// Responds to the pings on these connections, and counts those that the node has closed.
fn respond_to_pings(connections: &mut [TcpStream]) -> usize {
    let mut closed = 0;
    for stream in connections {
        stream.set_nonblocking(true).unwrap();
        let mut buffer = vec![0; 65536];
        match stream.read(&mut buffer) {
            Ok(0) => closed += 1,
            Ok(count) => {
                let mut rest = &buffer[..count];
                while let [a, b, c, kind, flags, ..] = rest {
                    let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                    let Some(payload) = rest.get(9..9 + length) else {
                        break;
                    };
                    if (*kind, flags & 1) == (6, 0) {
                        let _ = stream.write_all(&frame(6, 1, 0, payload));
                    }
                    rest = &rest[9 + length..];
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => closed += 1,
        }
    }
    closed
}

/// The status of a request from another address.
fn status_from(host: &str, url: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-o", "/dev/null", "-m", "30", "-w", "%{http_code}"]);
    let output = curl.args(["--interface", host, url]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn status_of(url: &str) -> String {
    status_from("127.0.0.1", url)
}

fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn start(settings: &str) -> (Deployment, Node) {
    let (deployment, _) = Deployment::with_keys(&[]);
    let text = std::fs::read_to_string(deployment.path("cloakroom.toml")).unwrap();
    let text = text.replace("[http]\n", &format!("[http]\n{settings}\n"));
    std::fs::write(deployment.path("cloakroom.toml"), text).unwrap();
    let node = deployment.serve();
    let ready = format!("{}/readyz", node.admin_url);
    wait_until("the node did not become ready", || {
        status_of(&ready) == "200"
    });
    (deployment, node)
}

/// Hundreds of HTTP/2 streams that never read a large response.
#[test]
fn unread_responses_do_not_fill_the_memory() {
    let (_deployment, node) = start("write_timeout = \"5s\"");
    let ping = format!("{}/ping", node.base_url);
    let before = memory(&node);

    let mut attackers = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(address(&node)).unwrap();
        stream.write_all(PREFACE).unwrap();
        for number in 0..100 {
            stream
                .write_all(&get(2 * number + 1, "/openapi.json"))
                .unwrap();
        }
        attackers.push(stream);
    }
    let mut highest = before;
    let held = Instant::now();
    while held.elapsed() < Duration::from_secs(10) {
        respond_to_pings(&mut attackers);
        highest = highest.max(memory(&node));
        std::thread::sleep(Duration::from_millis(100));
    }
    let other = status_from("127.0.0.2", &ping);

    let grown = highest.saturating_sub(before);
    println!(
        "800 stalled streams: {} MB before, {} MB at most",
        before >> 20,
        highest >> 20
    );
    assert!(grown < MEMORY_BYTES_MAX, "{} MB more", grown >> 20);
    assert_eq!(other, "200");
}

/// HTTP/1.1 clients that send many requests and read nothing.
#[test]
fn clients_that_do_not_read_are_disconnected() {
    let (_deployment, node) = start("write_timeout = \"3s\"");
    let before = memory(&node);
    let request = "GET /openapi.json HTTP/1.1\r\nhost: h\r\n\r\n".repeat(20);
    let connect = |_| {
        let mut stream = TcpStream::connect(address(&node)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let attackers: Vec<TcpStream> = (0..50).map(connect).collect();

    let mut highest = before;
    wait_until("the connections are not established", || {
        connections(&node) >= 40
    });
    wait_until("connections that do not read stay open", || {
        highest = highest.max(memory(&node));
        connections(&node) <= 1
    });

    println!(
        "50 clients that do not read: {} MB before, {} MB at most",
        before >> 20,
        highest >> 20
    );
    assert!(highest.saturating_sub(before) < MEMORY_BYTES_MAX);
    drop(attackers);
}

/// HTTP/2 connections that send one request and then only respond to pings.
#[test]
fn idle_connections_of_one_address_do_not_block_others() {
    let (_deployment, node) = start("max_connections = 40\nidle_timeout = \"8s\"");
    let ping = format!("{}/ping", node.base_url);
    let ready = format!("{}/readyz", node.admin_url);
    let mut attackers = Vec::new();
    for _ in 0..60 {
        let mut stream = TcpStream::connect(address(&node)).unwrap();
        // The node closes excess connections while this is written.
        let _ = stream.write_all(PREFACE);
        let _ = stream.write_all(&get(1, "/ping"));
        attackers.push(stream);
    }

    wait_until("excess connections stay open", || {
        respond_to_pings(&mut attackers) >= 50
    });
    // One address gets a quarter of 40: the others are rejected at once, not when they have been idle.
    assert_eq!(
        metric(&node, "cloakroom_http_connections_rejected_total"),
        50
    );
    let other = status_from("127.0.0.2", &ping);
    let readiness = status_of(&ready);
    wait_until("idle connections stay open", || {
        respond_to_pings(&mut attackers) == attackers.len()
    });
    let again = status_of(&ping);

    assert_eq!((other.as_str(), readiness.as_str()), ("200", "200"));
    assert_eq!(again, "200");
}
