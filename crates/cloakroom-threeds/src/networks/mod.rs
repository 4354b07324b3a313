//! Connections to card networks for 3-D Secure: their directory servers, or a vendor's 3DS Server.
//!
//! [`Adapter`] has three operations: find the networks of a card ([`Adapter::look_up`]), authenticate
//! ([`Adapter::authenticate`]), and fetch the result of a challenge ([`Adapter::fetch_result`]; directory servers send
//! it instead). Failures are returned as [`NetworkFailure`].

mod adapter;
mod client;
mod directory;
mod failure;
mod network;
mod ranges;
mod settings;
mod store;
mod vendor;

use std::sync::Arc;

use cloakroom_core::access::TenantKind;
use cloakroom_emv3ds::Version;
use cloakroom_platform::certificates::Certificate;
use cloakroom_platform::config::{self, Config};
use cloakroom_platform::storage;
use rustls::RootCertStore;
use rustls::server::danger::ClientCertVerifier;

pub use self::adapter::{Adapter, CardLookup, NetworkRange};
pub use self::directory::DirectoryServer;
pub use self::failure::{ErrorSource, NetworkFailure};
pub use self::network::Network;
pub use self::ranges::{missing_ranges, refresh_all_ranges, renew_macs, tend};
pub(crate) use self::store::STATEMENTS;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{setting}: {reason}")]
    Settings { setting: String, reason: String },
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Settings { .. } => "card_network_settings",
            Self::Storage(error) => error.kind(),
        }
    }
}

/// Card networks by kind of tenant; empty if none are configured.
#[derive(Default)]
pub struct CardNetworks {
    production: Option<Arc<Adapter>>,
    test: Option<Arc<Adapter>>,
}

impl CardNetworks {
    /// Reads `threeds.networks_file` and the certificates it names.
    pub fn open(config: &Config) -> Result<Self, Error> {
        match &config.threeds.networks_file {
            None => Ok(Self::default()),
            Some(path) => settings::load(path, &config.threeds),
        }
    }

    /// The adapter for tenants of a kind.
    pub fn of(&self, kind: TenantKind) -> Option<&Arc<Adapter>> {
        match kind {
            TenantKind::Production => self.production.as_ref(),
            TenantKind::Test => self.test.as_ref(),
        }
    }

    /// Accepts client certificates of every configured directory server. `DirectoryServer::is_trusted_sender` checks
    /// the network of a result.
    pub fn result_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let mut roots = RootCertStore::empty();
        for directory in self.directories() {
            roots
                .roots
                .extend(directory.authorities().roots.iter().cloned());
        }
        client::verifier(roots).map_err(|reason| Error::Settings {
            setting: "threeds.results_listen".to_owned(),
            reason,
        })
    }

    /// The client certificates of directory servers.
    pub fn certificates(&self) -> Vec<Arc<Certificate>> {
        let directories = self.directories();
        directories
            .map(|directory| directory.certificate.clone())
            .collect()
    }

    /// Every directory server that is called directly.
    pub fn directories(&self) -> impl Iterator<Item = &DirectoryServer> {
        let both = [self.production.as_deref(), self.test.as_deref()];
        both.into_iter().flatten().flat_map(Adapter::directories)
    }
}

/// Identity of this 3DS Server, the same for all networks.
#[derive(Clone, Debug)]
pub struct Identity {
    pub reference_number: String,
    /// Ascending, and never empty.
    pub versions: Vec<Version>,
}

impl Identity {
    fn of(settings: &config::Threeds) -> Self {
        Self {
            reference_number: settings.reference_number.clone(),
            versions: settings.versions.all().to_vec(),
        }
    }

    /// The newest supported version.
    pub fn newest(&self) -> Version {
        self.versions.last().copied().unwrap_or(Version::V2_2_0)
    }
}
