//! Connection limits of a listener: per node, reported to readiness, and per address.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cloakroom_platform::telemetry::catalog;

use crate::admin::Readiness;

/// A full node becomes ready again when at most this share of its connections, in tenths, is in
/// use.
const READY_TENTHS: usize = 9;
/// The readiness check that fails while no further connection is accepted.
const CONNECTIONS_CHECK: &str = "connections";
/// How often rejected connections are logged.
const REJECTION_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Tracks whether a listener accepts further connections, and reports it to readiness.
pub(super) struct Capacity {
    readiness: Option<Readiness>,
    max: usize,
    is_full: bool,
}

impl Capacity {
    pub(super) fn new(readiness: Option<Readiness>, max: usize) -> Self {
        if let Some(readiness) = &readiness {
            readiness.set(CONNECTIONS_CHECK, Ok(()));
        }
        Self {
            readiness,
            max,
            is_full: false,
        }
    }

    pub(super) fn is_available(&mut self, connections: usize) -> bool {
        if self.readiness.is_some() {
            catalog::HTTP_CONNECTIONS.set(connections as f64);
        }
        let is_available = connections < self.max;
        let is_full = match self.is_full {
            true => self.max * READY_TENTHS / 10 < connections,
            false => !is_available,
        };
        if is_full != self.is_full {
            self.is_full = is_full;
            if is_full {
                tracing::warn!(
                    count = connections,
                    "connection limit reached; no further connection is accepted"
                );
            }
            if let Some(readiness) = &self.readiness {
                let reason = || format!("all {} connections are in use", self.max);
                let outcome = if is_full { Err(reason()) } else { Ok(()) };
                readiness.set(CONNECTIONS_CHECK, outcome);
            }
        }
        is_available
    }
}

/// Connections that were closed at once because their address had too many.
#[derive(Default)]
pub(super) struct ConnectionRejections {
    last_logged: Option<Instant>,
}

impl ConnectionRejections {
    /// Counts a rejected connection. Logged at most once a minute.
    pub(super) fn record(&mut self, peer: SocketAddr) {
        catalog::HTTP_CONNECTIONS_REJECTED.increment(1);
        let is_recent = |at: Instant| at.elapsed() < REJECTION_LOG_INTERVAL;
        if self.last_logged.is_some_and(is_recent) {
            return;
        }
        self.last_logged = Some(Instant::now());
        tracing::warn!(
            client.address = %peer.ip(),
            setting = "http.max_connections_per_address",
            "an address has reached its connection limit; further connections are closed"
        );
    }
}
