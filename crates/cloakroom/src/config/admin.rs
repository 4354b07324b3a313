//! Settings of the listener for operators.

use std::net::SocketAddr;

use super::finding::Finding;
use super::section::section;

section! {
    /// Where health, readiness and metrics are served. Nobody signs in there: keep it private.
    pub struct Admin in "admin" {
        /// Address and port for `/healthz`, `/readyz` and `/metrics`.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9090)),
    }
}

impl Admin {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !self.listen.ip().is_loopback() {
            let message = "is not a loopback address; whoever can reach it reads the metrics";
            findings.push(Finding::warning("admin.listen", message));
        }
    }
}
