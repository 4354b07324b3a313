//! The other parties of 3-D Secure: card networks with their directory servers, or a vendor in front of
//! them.
//!
//! One seam, [`Adapter`], answers three questions about a card: which networks know it ([`Adapter::look_up`]),
//! what the issuer says to an authentication ([`Adapter::authenticate`]), and what became of a challenge
//! ([`Adapter::result`]; directory servers tell that by themselves). What goes wrong out there is a
//! [`Trouble`], told to the caller as it was met.

mod adapter;
mod directory;
mod line;
mod network;
mod ranges;
mod settings;
mod store;
mod trouble;
mod vendor;

use std::sync::Arc;

use cloakroom_emv3ds::Version;
use rustls::RootCertStore;
use rustls::server::danger::ClientCertVerifier;

pub use self::adapter::{Adapter, Found, Offer};
pub use self::directory::Directory;
pub use self::network::Network;
pub use self::ranges::{ask_all, tend};
pub(crate) use self::store::STATEMENTS;
pub use self::trouble::{Party, Trouble};
use crate::access::TenantKind;
use crate::config::{self, Config};
use crate::storage;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: {reason}")]
    Settings { place: String, reason: String },
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

/// Who is asked about cards; nobody if the configuration names none.
#[derive(Default)]
pub struct CardNetworks {
    production: Option<Arc<Adapter>>,
    test: Option<Arc<Adapter>>,
}

impl CardNetworks {
    /// Reads the file that the configuration names, with all certificates in it.
    pub fn open(config: &Config) -> Result<Self, Error> {
        match &config.threeds.networks_file {
            None => Ok(Self::default()),
            Some(path) => settings::load(path, &config.threeds),
        }
    }

    /// Who is asked for tenants of a kind.
    pub fn of(&self, kind: TenantKind) -> Option<&Arc<Adapter>> {
        match kind {
            TenantKind::Production => self.production.as_ref(),
            TenantKind::Test => self.test.as_ref(),
        }
    }

    /// Accepts clients of any directory server; which of them may tell what is asked later.
    pub(crate) fn result_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let mut roots = RootCertStore::empty();
        for directory in self.directories() {
            roots
                .roots
                .extend(directory.authorities().roots.iter().cloned());
        }
        line::verifier(roots).map_err(|reason| Error::Settings {
            place: "threeds.results_listen".to_owned(),
            reason,
        })
    }

    /// Every directory server that is asked directly.
    pub fn directories(&self) -> impl Iterator<Item = &Directory> {
        let both = [self.production.as_deref(), self.test.as_deref()];
        both.into_iter().flatten().flat_map(Adapter::directories)
    }
}

/// What a 3DS Server is known by to all networks.
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

    /// The newest version that we speak.
    pub fn newest(&self) -> Version {
        self.versions.last().copied().unwrap_or(Version::V2_2_0)
    }
}
