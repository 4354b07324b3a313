//! A node: the vault and the state of every area, ready to serve.

use std::ops::Deref;
use std::sync::Arc;

use cloakroom_core::deprecations::Counts;
use cloakroom_core::keys::RootKeys;
use cloakroom_core::rate_limits::{self, RateLimits};
use cloakroom_core::vault::{self, Vault};
use cloakroom_egress::{self as egress, Egress};
use cloakroom_platform::certificates::Certificate;
use cloakroom_platform::config::Config;
use cloakroom_proxy::ProxyServer;
use cloakroom_threeds::networks;
use cloakroom_threeds::server::ThreedsServer;
use cloakroom_tokens::tokens::TokenVault;
use cloakroom_webhooks::WebhookServer;

use crate::job_times::JobTimes;

/// A shared handle to a node.
#[derive(Clone)]
pub struct Node(Arc<Components>);

pub struct Components {
    threeds: ThreedsServer,
    pub proxy: ProxyServer,
    pub webhooks: WebhookServer,
    pub rate_limits: Arc<RateLimits>,
    /// Calls that used deprecated features.
    pub deprecation_counts: Counts,
    /// When the background jobs last succeeded.
    pub jobs: JobTimes,
    egress: Egress,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Vault(#[from] vault::Error),
    #[error(transparent)]
    RateLimits(#[from] rate_limits::Error),
    #[error(transparent)]
    CardNetworks(#[from] networks::Error),
    #[error(transparent)]
    Egress(#[from] egress::Error),
}

impl Node {
    pub async fn open(config: Config) -> Result<Self, Error> {
        Self::new(&Vault::open(config).await?)
    }

    /// Opens a node with root keys that are loaded already.
    pub async fn open_with(config: Config, roots: RootKeys) -> Result<Self, Error> {
        Self::new(&Vault::open_with(config, roots).await?)
    }

    /// Creates the keys of a new vault first.
    pub async fn open_or_initialize(config: Config) -> Result<Self, Error> {
        Self::new(&Vault::open_or_initialize(config).await?)
    }

    fn new(vault: &Vault) -> Result<Self, Error> {
        let tokens = TokenVault::new(vault);
        let egress = Egress::open(&vault.config)?;
        let rate_limits = Arc::new(RateLimits::open(vault)?);
        Ok(Self(Arc::new(Components {
            webhooks: WebhookServer::new(vault, &egress),
            deprecation_counts: Counts::default(),
            jobs: JobTimes::default(),
            threeds: ThreedsServer::new(&tokens)?,
            proxy: ProxyServer::new(&tokens, &egress, &rate_limits),
            rate_limits,
            egress,
        })))
    }

    /// The client certificates of this node.
    pub fn certificates(&self) -> Vec<Arc<Certificate>> {
        let mut certificates = self.card_networks.certificates();
        certificates.extend(self.egress.certificates());
        certificates
    }
}

impl Deref for Node {
    type Target = Components;

    fn deref(&self) -> &Components {
        &self.0
    }
}

impl Deref for Components {
    type Target = ThreedsServer;

    fn deref(&self) -> &ThreedsServer {
        &self.threeds
    }
}
