//! Settings of the API listener.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

use super::finding::Finding;
use super::network::Networks;
use super::plaintext::PlaintextConnection;
use super::section::section;
use super::setting::Setting;

/// Minimum buffer size of the HTTP/1.1 parser.
const HEADER_BYTES_MIN: usize = 8192;
/// Shortest prefix of networks of proxies.
const PROXY_PREFIX_MIN: u8 = 8;
/// Default for `max_connections_per_address`, capped at a quarter of `max_connections`.
const CONNECTIONS_PER_ADDRESS: usize = 512;

section! {
    /// The API listener, and its limits per connection and client.
    pub struct Http in "http" {
        /// Address and port that the API listens on.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Public URL of the API, such as `https://vault.example.com/v1`. `Location` headers start with it, and the API
        /// is served under its path.
        pub base_url: Option<BaseUrl> = None,
        /// PEM file with the certificate chain. If set, the API is served over TLS only.
        pub tls_cert_file: Option<PathBuf> = None,
        /// PEM file with the private key of the certificate.
        pub tls_key_file: Option<PathBuf> = None,
        /// Allows a production node to serve plaintext HTTP to other hosts. Set it only if a proxy directly in front of
        /// the node terminates TLS. Otherwise such a node does not start.
        pub allow_plaintext: bool = false,
        /// Networks of the proxies in front of this node, none wider than /8. `X-Forwarded-For` is trusted only from these
        /// networks. If unset, the address of a client is the peer address of its connection.
        pub trusted_proxies: Networks = Networks::default(),
        /// Timeout of the TLS handshake, and of receiving the headers of the next request. An idle HTTP/1.1 connection
        /// is closed after it. Behind a load balancer that reuses connections, set it longer than the idle timeout of
        /// the load balancer.
        pub header_timeout: Duration = Duration::from_secs(5),
        /// How long a client may take to send the body of a request.
        pub body_timeout: Duration = Duration::from_secs(30),
        /// How long a client may take to read the next 32 KiB of a response. A slower HTTP/2 stream is reset, and a
        /// connection that reads nothing is closed.
        pub write_timeout: Duration = Duration::from_secs(20),
        /// Idle timeout of an HTTP/2 connection without requests.
        pub idle_timeout: Duration = Duration::from_secs(60),
        /// Maximum age of a connection. After it, the connection is closed gracefully: requests in flight complete and
        /// the client reconnects.
        pub max_connection_age: Duration = Duration::from_secs(60 * 60),
        /// Maximum size of a request body.
        pub max_body_bytes: usize = 4 * 1024 * 1024,
        /// Maximum size of the request line and headers.
        pub max_header_bytes: usize = 16 * 1024,
        /// Maximum number of open connections. Further connections wait in the listen backlog, and `/readyz` reports
        /// the node as not ready.
        pub max_connections: usize = 10_000,
        /// Maximum number of open connections per client address, or per IPv6 /64 network. Further connections are
        /// closed immediately. `trusted_proxies` are exempt. If unset, 512 or a quarter of `max_connections`, whichever
        /// is less.
        pub max_connections_per_address: Option<usize> = None,
        /// Maximum number of concurrent requests (streams) per HTTP/2 connection.
        pub max_streams: usize = 64,
        /// Maximum unsent response bytes per connection. Further requests of the connection wait.
        pub max_unsent_bytes_per_connection: usize = 4 * 1024 * 1024,
        /// Maximum unsent response bytes per client address. Further requests of the address receive 503.
        pub max_unsent_bytes_per_address: usize = 32 * 1024 * 1024,
        /// Maximum unsent response bytes of this node. Further requests receive 503.
        pub max_unsent_bytes: usize = 256 * 1024 * 1024,
        /// How long requests in flight may take to complete during a shutdown.
        pub drain_timeout: Duration = Duration::from_secs(25),
    }
}

impl Http {
    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
        match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(_), None) => findings.push(Finding::error(
                "http.tls_key_file",
                "required, because http.tls_cert_file is set",
            )),
            (None, Some(_)) => findings.push(Finding::error(
                "http.tls_cert_file",
                "required, because http.tls_key_file is set",
            )),
            (Some(_), Some(_)) | (None, None) => {}
        }
        if is_production && self.is_plain_and_public() {
            let connection = PlaintextConnection {
                tls_setting: "http.tls_cert_file",
                waiver: "http.allow_plaintext",
                is_allowed: self.allow_plaintext,
                condition: "a proxy in front of this node terminates TLS",
            };
            findings.push(connection.finding());
        }
        if let Some(network) = self.trusted_proxies.wider_than(PROXY_PREFIX_MIN) {
            let message = format!(
                "{network} is wider than /{PROXY_PREFIX_MIN}: every client in it chooses the address by which it is limited, \
                 blocked and recorded; list the addresses of your proxies only"
            );
            findings.push(Finding::error("http.trusted_proxies", message));
        }
        if self.max_header_bytes < HEADER_BYTES_MIN {
            let message = format!("must be at least {HEADER_BYTES_MIN}");
            findings.push(Finding::error("http.max_header_bytes", message));
        }
    }

    /// Maximum number of open connections per client address.
    pub fn connections_per_address(&self) -> usize {
        let default = (self.max_connections / 4).clamp(1, CONNECTIONS_PER_ADDRESS);
        self.max_connections_per_address.unwrap_or(default)
    }

    /// Whether other hosts can reach this node over plaintext HTTP.
    fn is_plain_and_public(&self) -> bool {
        self.tls_cert_file.is_none() && !self.listen.ip().is_loopback()
    }

    /// Path prefix of the API: empty, or such as `/vault`.
    pub fn prefix(&self) -> &str {
        self.base_url.as_ref().map_or("", BaseUrl::prefix)
    }
}

/// An `http` or `https` URL without a trailing slash.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BaseUrl {
    text: String,
    prefix_at: usize,
}

impl BaseUrl {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_https(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// The path without a trailing slash: empty, or such as `/vault`.
    pub fn prefix(&self) -> &str {
        &self.text[self.prefix_at..]
    }
}

impl std::str::FromStr for BaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Setting::parse(text)
    }
}

impl Setting for BaseUrl {
    fn kind() -> String {
        "URL".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let invalid = || {
            "must be an http or https URL without user, query or fragment, \
             such as https://vault.example.com/v1"
                .to_owned()
        };
        if text.contains(['?', '#', '@', '{', '}']) {
            return Err(invalid());
        }
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(invalid());
        };
        if authority.host().is_empty() || uri.path().contains("//") {
            return Err(invalid());
        }

        let text = text.trim_end_matches('/').to_owned();
        let prefix_at = text.len() - uri.path().trim_end_matches('/').len();
        Ok(Self { text, prefix_at })
    }

    fn text(&self) -> Option<String> {
        Some(self.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_base_url_is_the_prefix() {
        let cases = [
            ("http://h", Some(("http://h", ""))),
            ("http://h/", Some(("http://h", ""))),
            (
                "https://h:8443/vault",
                Some(("https://h:8443/vault", "/vault")),
            ),
            ("https://h/a/b/", Some(("https://h/a/b", "/a/b"))),
            ("h/vault", None),
            ("/vault", None),
            ("ftp://h", None),
            ("https://h?x=1", None),
            ("https://h/#a", None),
            ("https://user:pass@h/", None),
            ("https://h//vault", None),
            ("https://h/{id}", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let parsed = BaseUrl::parse(text).ok();
            let parts = parsed.as_ref().map(|url| (url.as_str(), url.prefix()));
            assert_eq!(parts, expected, "{text:?}");
        }
    }
}
