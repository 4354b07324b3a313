//! A collector of OpenTelemetry traces for tests.

use std::sync::{Arc, Mutex};

/// An OTLP endpoint that stores all received bytes.
pub(crate) struct Collector {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) received: Arc<Mutex<Vec<u8>>>,
}

pub(crate) fn start_collector() -> Collector {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let received: Arc<Mutex<Vec<u8>>> = Arc::default();
    let buffer = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let buffer = buffer.clone();
            std::thread::spawn(move || receive(stream, &buffer));
        }
    });
    Collector { address, received }
}

/// Stores the received bytes of one connection, and responds to each complete request.
fn receive(mut stream: std::net::TcpStream, received: &Mutex<Vec<u8>>) {
    use std::io::{Read as _, Write as _};
    let mut buffer = vec![0; 64 * 1024];
    let mut pending = 0;
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        received
            .lock()
            .unwrap()
            .extend_from_slice(&buffer[..length]);
        pending = remaining(pending, &buffer[..length]);
        if pending == 0 {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }
}

/// The number of bytes of a request that are still missing after `piece`.
fn remaining(pending: usize, piece: &[u8]) -> usize {
    if pending > 0 {
        return pending.saturating_sub(piece.len());
    }
    let Some(end) = memchr::memmem::find(piece, b"\r\n\r\n") else {
        return 0;
    };
    let head = String::from_utf8_lossy(&piece[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|value| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    length.saturating_sub(piece.len() - end - 4)
}
