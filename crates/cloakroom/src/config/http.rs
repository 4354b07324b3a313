//! Settings of the listener that serves the API.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

use super::finding::Finding;
use super::network::Networks;
use super::section::section;
use super::setting::Setting;

/// The parser of HTTP/1.1 does not work with a smaller buffer.
const HEADER_BYTES_MIN: usize = 8192;

section! {
    /// Where the API is served, and what one connection may cost.
    pub struct Http in "http" {
        /// Address and port that the API listens on.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Address under which clients reach the API, such as `https://vault.example.com/v1`.
        /// It begins every `Location` header, and the API is served under its path.
        pub base_url: Option<BaseUrl> = None,
        /// PEM file with the certificate chain. With it, the API is served over TLS only.
        pub tls_cert_file: Option<PathBuf> = None,
        /// PEM file with the private key of the certificate.
        pub tls_key_file: Option<PathBuf> = None,
        /// Networks of the proxies in front of this node. What they tell in `X-Forwarded-For` is
        /// believed, and nobody else: without them, the address of a client is that of its connection.
        pub trusted_proxies: Networks = Networks::default(),
        /// How long a client may take to agree on TLS, and to send the head of its next request. An
        /// idle HTTP/1.1 connection is closed after it: behind a load balancer that keeps
        /// connections open, set it longer than the balancer does.
        pub header_timeout: Duration = Duration::from_secs(5),
        /// How long a client may take to send the body of a request.
        pub body_timeout: Duration = Duration::from_secs(30),
        /// Largest body of a request.
        pub max_body_bytes: usize = 4 * 1024 * 1024,
        /// Largest head of a request.
        pub max_header_bytes: usize = 16 * 1024,
        /// Connections held open at a time. More wait in the queue of the operating system.
        pub max_connections: usize = 10_000,
        /// How long running requests may take to finish once the service is asked to stop.
        pub drain_timeout: Duration = Duration::from_secs(25),
    }
}

impl Http {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(_), None) => findings.push(Finding::error(
                "http.tls_key_file",
                "needed, because http.tls_cert_file is set",
            )),
            (None, Some(_)) => findings.push(Finding::error(
                "http.tls_cert_file",
                "needed, because http.tls_key_file is set",
            )),
            (Some(_), Some(_)) | (None, None) => {}
        }
        if self.max_header_bytes < HEADER_BYTES_MIN {
            let message = format!("must be {HEADER_BYTES_MIN} or more");
            findings.push(Finding::error("http.max_header_bytes", message));
        }
    }

    /// The path under which the API is served: empty, or `/vault`.
    pub fn prefix(&self) -> &str {
        self.base_url.as_ref().map_or("", BaseUrl::prefix)
    }
}

/// An `http` or `https` URL without a slash at its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BaseUrl {
    text: String,
    prefix_at: usize,
}

impl BaseUrl {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path, without a slash at its end: empty, or `/vault`.
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
        let refusal = || {
            "must be an http or https URL without user, query or fragment, \
             such as https://vault.example.com/v1"
                .to_owned()
        };
        if text.contains(['?', '#', '@', '{', '}']) {
            return Err(refusal());
        }
        let uri: Uri = text.parse().map_err(|_| refusal())?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refusal());
        };
        if authority.host().is_empty() || uri.path().contains("//") {
            return Err(refusal());
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
    fn a_base_url_keeps_its_path_as_the_prefix() {
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
