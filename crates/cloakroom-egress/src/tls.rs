//! TLS of outbound connections: trusted certificate authorities and client certificates per destination.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cloakroom_platform::certificates::{Certificate, read_chain};
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use uuid::Uuid;

use crate::{Error, HostList};

const DESTINATIONS_FILE: &str = "egress.destinations_file";
const CA_FILE: &str = "egress.ca_file";

/// The TLS configurations of all destinations.
pub(crate) struct TlsProfiles {
    /// In the order of the file; the first match applies.
    profiles: Vec<Profile>,
    default: Arc<ClientConfig>,
}

struct Profile {
    hosts: HostList,
    /// The tenants whose requests may present the client certificate. If `None`, all.
    tenants: Option<Vec<Uuid>>,
    tls: Arc<ClientConfig>,
    /// The client certificate, if there is one.
    certificate: Option<Arc<Certificate>>,
}

/// The file of the setting `destinations_file`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DestinationsFile {
    destination: Vec<ProfileEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileEntry {
    hosts: Vec<String>,
    tenants: Option<Vec<Uuid>>,
    ca_file: Option<PathBuf>,
    certificate_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl TlsProfiles {
    pub(crate) fn load(config: &config::Egress) -> Result<Self, Error> {
        let mut public = RootCertStore::empty();
        // Unreadable certificates of the operating system are skipped: destinations that need them fail to verify.
        public.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = &config.ca_file {
            add_certificates(&mut public, path).map_err(|reason| Error::new(CA_FILE, reason))?;
        }
        let public = Arc::new(public);
        let entries = match &config.destinations_file {
            Some(path) => {
                read_entries(path).map_err(|reason| Error::new(DESTINATIONS_FILE, reason))?
            }
            None => Vec::new(),
        };
        let profiles = entries.into_iter().map(|entry| entry.load(&public));
        let profiles = profiles.collect::<Result<_, _>>();
        let default = client_config(Arc::clone(&public), None);
        Ok(Self {
            profiles: profiles.map_err(|reason| Error::new(DESTINATIONS_FILE, reason))?,
            default: default.map_err(|reason| Error::new(CA_FILE, reason))?,
        })
    }

    /// The client certificates, which change with their files.
    pub(crate) fn certificates(&self) -> Vec<Arc<Certificate>> {
        let profiles = self.profiles.iter();
        profiles
            .filter_map(|profile| profile.certificate.clone())
            .collect()
    }

    /// The configuration for a tenant and a host: it depends on nothing else, so connections of one tenant to one host
    /// can share a pool.
    pub(crate) fn find(&self, host: &str, tenant: TenantId) -> &Arc<ClientConfig> {
        let matches = |profile: &&Profile| {
            let tenants = profile.tenants.as_ref();
            profile.hosts.contains(host)
                && tenants.is_none_or(|tenants| tenants.contains(&tenant.uuid))
        };
        let profile = self.profiles.iter().find(matches);
        profile.map_or(&self.default, |profile| &profile.tls)
    }
}

impl ProfileEntry {
    fn load(self, public: &Arc<RootCertStore>) -> Result<Profile, String> {
        let hosts: HostList = self
            .hosts
            .join(",")
            .parse()
            .map_err(|rule| format!("hosts {rule}"))?;
        // A private CA replaces the public ones: no public CA can issue a certificate for these hosts.
        let roots = match &self.ca_file {
            Some(path) => {
                let mut roots = RootCertStore::empty();
                add_certificates(&mut roots, path)?;
                Arc::new(roots)
            }
            None => Arc::clone(public),
        };
        let certificate = match (&self.certificate_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                let name = format!("egress {}", self.hosts.join(","));
                let loaded = Certificate::load(name, certificate, key);
                Some(loaded.map_err(|error| error.to_string())?)
            }
            (None, None) => None,
            _ => return Err("certificate_file and key_file must be set together".to_owned()),
        };
        Ok(Profile {
            hosts,
            tenants: self.tenants,
            tls: client_config(roots, certificate.clone())?,
            certificate,
        })
    }
}

/// TLS 1.2 and 1.3, with HTTP/1.1.
fn client_config(
    roots: Arc<RootCertStore>,
    certificate: Option<Arc<Certificate>>,
) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| "TLS is not available".to_owned())?
        .with_root_certificates(roots);
    let mut config = match certificate {
        Some(certificate) => {
            let mut config = builder.with_client_cert_resolver(certificate);
            // A resumed session would keep the certificate that it started with.
            config.resumption = Resumption::disabled();
            config
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_entries(path: &Path) -> Result<Vec<ProfileEntry>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {}", path.display(), error.kind()))?;
    let file: DestinationsFile = toml::from_str(&text)
        .map_err(|error| format!("{}: {}", path.display(), error.message()))?;
    Ok(file.destination)
}

fn add_certificates(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    for certificate in read_chain(path).map_err(|error| error.to_string())? {
        roots
            .add(certificate)
            .map_err(|_| format!("{} contains no CA certificate", path.display()))?;
    }
    Ok(())
}
