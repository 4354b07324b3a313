//! The 3DS server: the vault of tokens together with the state of 3-D Secure.

use std::ops::Deref;
use std::sync::Arc;

use cloakroom_platform::api::HasHttpConfig;
use cloakroom_platform::config;
use cloakroom_tokens::tokens::TokenVault;

use crate::card_testing::CardTesting;
use crate::networks::{self, CardNetworks};

/// A shared handle, passed to every operation of 3-D Secure.
#[derive(Clone)]
pub struct ThreedsServer(Arc<ThreedsState>);

pub struct ThreedsState {
    tokens: TokenVault,
    /// Directory servers of the card networks.
    pub card_networks: CardNetworks,
    pub card_testing: CardTesting,
}

impl ThreedsServer {
    pub fn new(tokens: &TokenVault) -> Result<Self, networks::Error> {
        Ok(Self(Arc::new(ThreedsState {
            card_networks: CardNetworks::open(&tokens.config)?,
            card_testing: CardTesting::new(tokens),
            tokens: tokens.clone(),
        })))
    }
}

impl Deref for ThreedsServer {
    type Target = ThreedsState;

    fn deref(&self) -> &ThreedsState {
        &self.0
    }
}

impl Deref for ThreedsState {
    type Target = TokenVault;

    fn deref(&self) -> &TokenVault {
        &self.tokens
    }
}

impl HasHttpConfig for ThreedsServer {
    fn http_config(&self) -> &config::Http {
        &self.config.http
    }
}
