//! The context of webhooks: the vault, the way out, and the keys that sign deliveries.

use std::ops::Deref;
use std::sync::Arc;

use cloakroom_core::vault::Vault;
use cloakroom_egress::Egress;
use cloakroom_platform::api::HasHttpConfig;
use cloakroom_platform::config;

use crate::signatures::SigningKeys;

/// A shared handle, passed to every operation of webhooks.
#[derive(Clone)]
pub struct WebhookServer(Arc<WebhookState>);

pub struct WebhookState {
    vault: Vault,
    pub egress: Egress,
    pub(crate) signing_keys: SigningKeys,
}

impl WebhookServer {
    pub fn new(vault: &Vault, egress: &Egress) -> Self {
        Self(Arc::new(WebhookState {
            vault: vault.clone(),
            egress: egress.clone(),
            signing_keys: SigningKeys::default(),
        }))
    }
}

impl Deref for WebhookServer {
    type Target = WebhookState;

    fn deref(&self) -> &WebhookState {
        &self.0
    }
}

impl Deref for WebhookState {
    type Target = Vault;

    fn deref(&self) -> &Vault {
        &self.vault
    }
}

impl HasHttpConfig for WebhookServer {
    fn http_config(&self) -> &config::Http {
        &self.config.http
    }
}
