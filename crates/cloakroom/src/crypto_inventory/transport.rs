//! TLS: protocols, cipher suites and key exchange as the library offers them, and every connection that uses it.

use cloakroom_platform::config::Config;
use rustls::crypto::aws_lc_rs;
use rustls::{NamedGroup, SupportedCipherSuite};

/// A kind of connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub name: &'static str,
    pub authentication: &'static str,
    /// Whether the configuration uses TLS for it; `None` if it does not exist in this configuration.
    pub uses_tls: fn(&Config) -> Option<bool>,
    /// Source files below `crates`.
    pub places: &'static [&'static str],
}

/// All connections that use TLS, or can.
pub const CONNECTIONS: &[Connection] = &[
    Connection {
        name: "API and hosted pages",
        authentication: "server certificate; API keys",
        uses_tls: |config| Some(config.http.tls_cert_file.is_some()),
        places: &[
            "cloakroom/src/server/mod.rs",
            "cloakroom/src/server/tls.rs",
            "cloakroom/src/server/connection.rs",
            "cloakroom-platform/src/certificates/mod.rs",
            "cloakroom-platform/src/certificates/details.rs",
        ],
    },
    Connection {
        name: "results of 3-D Secure, from directory servers",
        authentication: "server and client certificates",
        uses_tls: |config| config.threeds.results_listen.map(|_| true),
        places: &[
            "cloakroom-threeds/src/networks/mod.rs",
            "cloakroom-threeds/src/networks/directory.rs",
            "cloakroom-threeds/src/networks/settings.rs",
            "cloakroom-threeds/src/sessions/receive.rs",
        ],
    },
    Connection {
        name: "3-D Secure directory servers and vendors",
        authentication: "server and client certificates, or an API key",
        uses_tls: |config| config.threeds.networks_file.as_ref().map(|_| true),
        places: &["cloakroom-threeds/src/networks/client.rs"],
    },
    Connection {
        name: "destinations of proxies and webhooks",
        authentication: "server certificate; client certificates of egress.destinations_file",
        uses_tls: |_| Some(true),
        places: &[
            "cloakroom-egress/src/tls.rs",
            "cloakroom-egress/src/connect.rs",
            "cloakroom-egress/src/failure.rs",
        ],
    },
    Connection {
        name: "PostgreSQL",
        authentication: "server certificate; password (SCRAM-SHA-256)",
        uses_tls: |config| {
            let is_set = config.database.url.is_some();
            is_set.then_some(config.database.ca_file.is_some())
        },
        places: &["cloakroom-platform/src/storage/connection.rs"],
    },
    Connection {
        name: "Redis",
        authentication: "server certificate; password",
        uses_tls: |config| {
            let is_set = config.redis.url.is_some();
            is_set.then_some(config.redis.ca_file.is_some())
        },
        places: &["cloakroom-platform/src/storage/redis.rs"],
    },
    Connection {
        name: "sinks of the audit log",
        authentication: "server certificate",
        uses_tls: |config| {
            let audit = &config.audit;
            let urls = audit.sink_url.is_some() || audit.stream_url.is_some();
            let servers = audit.sink_syslog.is_some() || audit.stream_syslog.is_some();
            (urls || servers).then_some(true)
        },
        places: &[
            "cloakroom/src/sinks/mod.rs",
            "cloakroom-platform/src/outbound.rs",
            "cloakroom/src/sinks/post.rs",
            "cloakroom/src/sinks/stream.rs",
            "cloakroom/src/sinks/syslog.rs",
        ],
    },
    Connection {
        name: "collector of traces and metrics (OTLP)",
        authentication: "server certificate; headers of telemetry.otlp_headers_file",
        uses_tls: |config| {
            let telemetry = &config.telemetry;
            let endpoints = [&telemetry.otlp_endpoint, &telemetry.otlp_metrics_endpoint];
            let mut endpoints = endpoints.into_iter().flatten().peekable();
            endpoints.peek()?;
            Some(endpoints.all(|url| url.starts_with("https://")))
        },
        places: &["cloakroom-platform/src/telemetry/otlp/client.rs"],
    },
    Connection {
        name: "Vault or OpenBao Transit",
        authentication: "server certificate; token",
        uses_tls: |config| {
            let url = config.root_key.transit_url.as_deref();
            url.map(|url| url.starts_with("https://"))
        },
        places: &["cloakroom-custody/src/transit/client.rs"],
    },
    Connection {
        name: "AWS KMS",
        authentication: "server certificate; SigV4",
        uses_tls: |config| {
            let endpoint = config.root_key.aws_kms_endpoint.as_deref();
            let key = config.root_key.aws_kms_key.as_deref();
            key.map(|_| endpoint.is_none_or(|url| url.starts_with("https://")))
        },
        places: &["cloakroom-custody/src/aws_kms.rs"],
    },
];

/// What every TLS connection of the service negotiates from, in order of preference.
#[derive(Clone, Debug)]
pub struct Offered {
    pub cipher_suites: Vec<String>,
    pub key_exchange: Vec<String>,
    /// Whether a key exchange is offered that resists quantum computers.
    pub is_post_quantum: bool,
}

pub(super) fn offered() -> Offered {
    let provider = aws_lc_rs::default_provider();
    let suite = |suite: &SupportedCipherSuite| format!("{:?}", suite.suite());
    let groups: Vec<NamedGroup> = provider
        .kx_groups
        .iter()
        .map(|group| group.name())
        .collect();
    Offered {
        cipher_suites: provider.cipher_suites.iter().map(suite).collect(),
        key_exchange: groups.iter().map(|group| format!("{group:?}")).collect(),
        is_post_quantum: groups.contains(&NamedGroup::X25519MLKEM768),
    }
}
