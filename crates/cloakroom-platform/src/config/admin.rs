//! Settings of the admin listener.

use std::net::SocketAddr;

use super::finding::Finding;
use super::section::section;

section! {
    /// Listener for health, readiness and metrics. It has no authentication: restrict access to a private network.
    pub struct Admin in "admin" {
        /// Address and port for `/healthz`, `/readyz` and `/metrics`.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9090)),
    }
}

impl Admin {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !self.listen.ip().is_loopback() {
            let message =
                "is not a loopback address: every client that can reach it can read the metrics";
            findings.push(Finding::warning("admin.listen", message));
        }
    }
}
