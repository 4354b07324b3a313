//! Ports for servers whose address has to be known before they start.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below what systems hand out to whoever does not care (32768 and up on Linux): a port of these stays free until it is
/// used, while one of those may be somebody's connection a moment later.
const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;
/// So many ports of one process come before those of the next process begin.
const STRIDE: u32 = 37;

/// A loopback port that nobody listens on, and that another process does not try at the same time.
pub fn free_port() -> io::Result<u16> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(STRIDE);
    for _ in 0..COUNT {
        let offset = start.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + offset).map_err(io::Error::other)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_different_and_not_handed_out_otherwise() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port().unwrap() + 1));
        let ports: Vec<u16> = (0..100).map(|_| free_port().unwrap()).collect();

        let mut different = ports.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 100);
        assert!(ports.iter().all(|port| (12_000..32_000).contains(port)));
        // If nobody else had it, it was passed over.
        let taken = taken.map(|listener| listener.local_addr().unwrap().port());
        assert!(taken.is_err() || !ports.contains(&taken.unwrap()));
    }
}
