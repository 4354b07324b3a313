//! Redis connection settings.

use std::path::PathBuf;

use super::finding::Finding;
use super::plaintext::{self, PlaintextConnection};
use super::section::section;
use super::setting::Secret;

section! {
    /// The Redis server in which nodes share data that may be lost: the wrapped keys of security codes, and the
    /// counters of limits. If unset, each node stores these in its own memory, which is sufficient for a single node.
    pub struct Redis in "redis" {
        /// URL of the server, such as `rediss://cloakroom:PASSWORD@redis.internal:6379/0`. Disable
        /// persistence on the server (`save ""`, `appendonly no`, `repl-diskless-sync yes`).
        pub url: Option<Secret> = None,
        /// File that contains the URL, instead of `url`.
        pub url_file: Option<PathBuf> = None,
        /// PEM file with the CA certificate of the server, for `rediss://` URLs. The server certificate and its host
        /// name are verified.
        pub ca_file: Option<PathBuf> = None,
        /// Allows connections without TLS to a server on another host in production. Set it only if the network
        /// between them is encrypted. Otherwise such a node does not start.
        pub allow_plaintext: bool = false,
        /// Allows a server in production that rejects `CONFIG GET`, such as a managed one. Set it only if the server
        /// writes nothing to disk. Otherwise a node does not start with such a server.
        pub allow_unchecked_persistence: bool = false,
    }
}

impl Redis {
    /// Reads the URL from its file.
    pub(super) fn resolve(&mut self, findings: &mut Vec<Finding>) {
        let file = self.url_file.as_deref();
        Secret::resolve("redis.url", &mut self.url, file, findings);
    }

    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
        let Some(url) = &self.url else {
            if self.ca_file.is_some() {
                let message = "has no effect without redis.url";
                findings.push(Finding::error("redis.ca_file", message));
            }
            return;
        };
        let url = url.reveal();
        let (is_plain, is_tls) = (url.starts_with("redis://"), url.starts_with("rediss://"));
        if !is_plain && !is_tls {
            let message = "must begin with redis:// or rediss://";
            findings.push(Finding::error("redis.url", message));
        }
        if is_production && is_plain && !plaintext::is_local_redis(url) {
            let connection = PlaintextConnection {
                tls_setting: "redis.ca_file",
                waiver: "redis.allow_plaintext",
                is_allowed: self.allow_plaintext,
                condition: "the network to Redis is encrypted",
            };
            findings.push(connection.finding());
        }
        // The fragment `#insecure` would disable certificate verification.
        if url.contains('#') {
            findings.push(Finding::error("redis.url", "must not contain a #"));
        }
        match (is_tls, &self.ca_file) {
            (true, None) => findings.push(Finding::error(
                "redis.ca_file",
                "required, because redis.url uses TLS",
            )),
            (false, Some(_)) if is_plain => findings.push(Finding::error(
                "redis.url",
                "must begin with rediss://, because redis.ca_file is set",
            )),
            _ => {}
        }
    }
}
