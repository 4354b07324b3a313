//! Settings of the proxy.

use std::time::Duration;

use super::finding::Finding;
use super::section::section;

section! {
    /// The proxy (`/proxy`), which sends requests to destinations with tokens replaced by their data.
    /// docs/guides/proxy.md explains how to use it.
    pub struct Proxy in "proxy" {
        /// How long a destination may take to respond. A slower destination is a 408. Time counts from the last part of
        /// the request body that the destination accepted.
        pub destination_timeout: Duration = Duration::from_secs(25),
        /// How long a whole request may take, with its request and response bodies. A response that takes longer is
        /// interrupted.
        pub total_timeout: Duration = Duration::from_secs(120),
        /// Maximum size of a request body whose expressions are replaced. A larger body is streamed as it is, and
        /// rejected if it contains an expression.
        pub max_replaced_bytes: usize = 1024 * 1024,
        /// Maximum size of any request body.
        pub max_body_bytes: usize = 256 * 1024 * 1024,
    }
}

impl Proxy {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if self.destination_timeout.is_zero() || self.total_timeout < self.destination_timeout {
            let message = "must be more than 0s and at most proxy.total_timeout";
            findings.push(Finding::error("proxy.destination_timeout", message));
        }
        if self.max_body_bytes < self.max_replaced_bytes {
            let message = "must be at most proxy.max_body_bytes";
            findings.push(Finding::error("proxy.max_replaced_bytes", message));
        }
    }
}
