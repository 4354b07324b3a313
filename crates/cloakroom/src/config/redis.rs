//! Settings of the connection to Redis.

use std::path::PathBuf;

use super::finding::Finding;
use super::section::section;
use super::setting::Secret;

section! {
    /// Where nodes share what may be lost: the wrapped keys of security codes, and what limits count.
    /// Without it, each node keeps these to itself, which is right for a single node.
    pub struct Redis in "redis" {
        /// URL of the server, such as `rediss://cloakroom:PASSWORD@redis.internal:6379/0`. It must
        /// not write to disk: `save ""` and `appendonly no`.
        pub url: Option<Secret> = None,
        /// File that holds the URL, in place of `url`.
        pub url_file: Option<PathBuf> = None,
        /// PEM file with the certificate authority of the server, for URLs that begin with
        /// `rediss://`. The server and its name are verified.
        pub ca_file: Option<PathBuf> = None,
    }
}

impl Redis {
    /// Takes the URL out of its file.
    pub(super) fn resolve(&mut self, findings: &mut Vec<Finding>) {
        let file = self.url_file.as_deref();
        Secret::resolve("redis.url", &mut self.url, file, findings);
    }

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        let Some(url) = &self.url else {
            if self.ca_file.is_some() {
                let message = "has no use without redis.url";
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
        // What follows a `#` would switch the verification of the server off.
        if url.contains('#') {
            findings.push(Finding::error("redis.url", "must not hold a #"));
        }
        match (is_tls, &self.ca_file) {
            (true, None) => findings.push(Finding::error(
                "redis.ca_file",
                "needed, because redis.url asks for TLS",
            )),
            (false, Some(_)) if is_plain => findings.push(Finding::error(
                "redis.url",
                "must begin with rediss://, because redis.ca_file is set",
            )),
            _ => {}
        }
    }
}
