//! The vault together with the state of tokens.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::HasHttpConfig;
use cloakroom_platform::config;

use super::freshness::LatestWrites;
use super::lock::TokenLocks;
use super::store::{TokenInsertBatchers, TokenReadBatcher, TokenReader};
use crate::data_vault::DataVault;

/// A shared handle, passed to every operation on tokens.
#[derive(Clone)]
pub struct TokenVault(Arc<TokenState>);

pub struct TokenState {
    data: DataVault,
    /// Batched reads and inserts of single tokens.
    pub(super) reads: TokenReadBatcher,
    pub(super) inserts: TokenInsertBatchers,
    pub(super) locks: TokenLocks,
    pub(super) latest_writes: LatestWrites,
}

impl TokenVault {
    pub fn new(vault: &Vault) -> Self {
        let database = &vault.config.database;
        Self(Arc::new(TokenState {
            data: DataVault::new(vault),
            reads: TokenReader::batched(&vault.db, database),
            inserts: TokenInsertBatchers::new(vault.audit.chain_writers(), database),
            locks: TokenLocks::default(),
            latest_writes: LatestWrites::default(),
        }))
    }
}

impl Deref for TokenVault {
    type Target = TokenState;

    fn deref(&self) -> &TokenState {
        &self.0
    }
}

impl Deref for TokenState {
    type Target = DataVault;

    fn deref(&self) -> &DataVault {
        &self.data
    }
}

impl HasHttpConfig for TokenVault {
    fn http_config(&self) -> &config::Http {
        &self.config.http
    }
}

/// For handlers that need no state of tokens.
impl FromRef<TokenVault> for DataVault {
    fn from_ref(vault: &TokenVault) -> Self {
        vault.data.clone()
    }
}

/// For handlers that need only the context of every operation.
impl FromRef<TokenVault> for Vault {
    fn from_ref(vault: &TokenVault) -> Self {
        Self::clone(vault)
    }
}
