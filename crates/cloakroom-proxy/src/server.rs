//! The proxy server: the vault of tokens together with the state of the proxy.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use cloakroom_core::rate_limits::RateLimits;
use cloakroom_core::vault::Vault;
use cloakroom_egress::Egress;
use cloakroom_platform::api::HasHttpConfig;
use cloakroom_platform::config;
use cloakroom_tokens::tokens::TokenVault;

use crate::definition::DefinitionCache;
use crate::transforms::MaskWorkers;

/// A shared handle, passed to every operation of the proxy.
#[derive(Clone)]
pub struct ProxyServer(Arc<ProxyState>);

pub struct ProxyState {
    tokens: TokenVault,
    /// The only way to destinations.
    pub egress: Egress,
    /// Pre-configured proxies, by key.
    pub definitions: DefinitionCache,
    pub mask_workers: MaskWorkers,
    /// Admits the work of a request on this node, but not its wait for the destination.
    pub limits: Arc<RateLimits>,
}

impl ProxyServer {
    pub fn new(tokens: &TokenVault, egress: &Egress, limits: &Arc<RateLimits>) -> Self {
        Self(Arc::new(ProxyState {
            tokens: tokens.clone(),
            egress: egress.clone(),
            definitions: DefinitionCache::new(&tokens.config.access),
            mask_workers: MaskWorkers::default(),
            limits: Arc::clone(limits),
        }))
    }
}

impl Deref for ProxyServer {
    type Target = ProxyState;

    fn deref(&self) -> &ProxyState {
        &self.0
    }
}

impl Deref for ProxyState {
    type Target = TokenVault;

    fn deref(&self) -> &TokenVault {
        &self.tokens
    }
}

impl HasHttpConfig for ProxyServer {
    fn http_config(&self) -> &config::Http {
        &self.config.http
    }
}

/// For handlers that need only the context of every operation.
impl FromRef<ProxyServer> for Vault {
    fn from_ref(server: &ProxyServer) -> Self {
        Self::clone(server)
    }
}
