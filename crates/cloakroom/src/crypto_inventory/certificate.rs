//! The certificates that the configuration names: of listeners, of clients, and of trusted authorities.

use std::path::Path;

use cloakroom_egress::Egress;
use cloakroom_platform::certificates::{Certificate, CertificateDetails, read_details};
use cloakroom_platform::config::Config;
use cloakroom_threeds::networks::CardNetworks;
use jiff::Timestamp;

use crate::server;

/// A certificate, and where it is used.
#[derive(Clone, Debug)]
pub struct UsedCertificate {
    /// The setting or the destination.
    pub name: String,
    pub role: Role,
    pub details: CertificateDetails,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Presented by a listener.
    Server,
    /// Presented to a server.
    Client,
    /// Verifies the certificates of servers.
    Authority,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Authority => "authority",
        }
    }
}

impl UsedCertificate {
    /// Whole days until the end; negative afterwards.
    pub fn days_left(&self, now: Timestamp) -> i64 {
        self.details.not_after.duration_since(now).as_hours() / 24
    }
}

/// Reads all certificates. Unreadable ones are returned as one sentence each.
///
/// Must be called within a Tokio runtime.
pub fn list_certificates(config: &Config) -> (Vec<UsedCertificate>, Vec<String>) {
    let mut listed = Listed::default();
    let (http, threeds) = (&config.http, &config.threeds);
    let listeners = [
        (
            server::API_CERTIFICATE,
            &http.tls_cert_file,
            &http.tls_key_file,
        ),
        (
            server::RESULTS_CERTIFICATE,
            &threeds.results_cert_file,
            &threeds.results_key_file,
        ),
    ];
    for (name, cert, key) in listeners {
        if let (Some(cert), Some(key)) = (cert, key) {
            listed.add_listener(name, cert, key);
        }
    }
    match CardNetworks::open(config) {
        Ok(networks) => listed.add_loaded(&networks.certificates()),
        Err(error) => listed.unreadable.push(error.to_string()),
    }
    match Egress::open(config) {
        Ok(egress) => listed.add_loaded(&egress.certificates()),
        Err(error) => listed.unreadable.push(error.to_string()),
    }
    let authorities = [
        ("database.ca_file", &config.database.ca_file),
        ("redis.ca_file", &config.redis.ca_file),
        ("root_key.transit_ca_file", &config.root_key.transit_ca_file),
        ("audit.sink_ca_file", &config.audit.sink_ca_file),
        ("egress.ca_file", &config.egress.ca_file),
        ("telemetry.otlp_ca_file", &config.telemetry.otlp_ca_file),
    ];
    for (name, file) in authorities {
        if let Some(file) = file {
            listed.add_authorities(name, file);
        }
    }
    (listed.certificates, listed.unreadable)
}

#[derive(Default)]
struct Listed {
    certificates: Vec<UsedCertificate>,
    unreadable: Vec<String>,
}

impl Listed {
    fn add_listener(&mut self, name: &str, cert: &Path, key: &Path) {
        match Certificate::load(name, cert, key) {
            Ok(certificate) => self.certificates.push(UsedCertificate {
                name: name.to_owned(),
                role: Role::Server,
                details: certificate.details(),
            }),
            Err(error) => self.unreadable.push(format!("{name}: {error}")),
        }
    }

    /// Every authority of a file is trusted.
    fn add_authorities(&mut self, name: &str, file: &Path) {
        match read_details(file) {
            Ok(details) => {
                let used = details.into_iter().map(|details| UsedCertificate {
                    name: name.to_owned(),
                    role: Role::Authority,
                    details,
                });
                self.certificates.extend(used);
            }
            Err(error) => self.unreadable.push(format!("{name}: {error}")),
        }
    }

    fn add_loaded(&mut self, certificates: &[std::sync::Arc<Certificate>]) {
        let used = certificates.iter().map(|certificate| UsedCertificate {
            name: certificate.name().to_owned(),
            role: Role::Client,
            details: certificate.details(),
        });
        self.certificates.extend(used);
    }
}
