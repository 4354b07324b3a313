//! Ports for servers whose address must be known before they start.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ephemeral range (32768 and up on Linux): a free port in this range stays free until it is used, while
/// an ephemeral port may be taken by an outgoing connection at any time.
const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;
/// Distance between the first ports of two consecutive pids.
const STRIDE: u32 = 37;

/// A free loopback port that concurrent processes do not try at the same time.
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
    fn ports_are_free_distinct_and_below_the_ephemeral_range() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port().unwrap() + 1));
        let ports: Vec<u16> = (0..100).map(|_| free_port().unwrap()).collect();

        let mut different = ports.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 100);
        assert!(ports.iter().all(|port| (12_000..32_000).contains(port)));
        // If binding succeeded above, that port was skipped.
        let taken = taken.map(|listener| listener.local_addr().unwrap().port());
        assert!(taken.is_err() || !ports.contains(&taken.unwrap()));
    }
}
