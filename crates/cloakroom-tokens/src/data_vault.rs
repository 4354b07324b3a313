//! The vault together with the state that operations on sensitive data need.

use std::ops::Deref;
use std::sync::Arc;

use cloakroom_core::public_storage::PublicStorage;
use cloakroom_core::vault::Vault;
use cloakroom_core::velocity::Velocity;

use crate::bins::Bins;
use crate::containers::ContainerNumbers;
use crate::search_expressions::SearchExpressions;
use crate::security_codes::SecurityCodes;

/// A shared handle, passed to every operation on the data of tokens and intents.
#[derive(Clone)]
pub struct DataVault(Arc<DataState>);

pub struct DataState {
    vault: Vault,
    pub bins: Bins,
    pub container_numbers: ContainerNumbers,
    pub search_expressions: SearchExpressions,
    pub security_codes: SecurityCodes,
    pub velocity: Velocity,
    pub public_storage: PublicStorage,
}

impl DataVault {
    pub fn new(vault: &Vault) -> Self {
        Self(Arc::new(DataState {
            bins: Bins::default(),
            container_numbers: ContainerNumbers::new(&vault.db),
            search_expressions: SearchExpressions::new(&vault.db),
            security_codes: SecurityCodes::new(vault),
            velocity: Velocity::new(vault),
            public_storage: PublicStorage::new(vault),
            vault: vault.clone(),
        }))
    }
}

impl Deref for DataVault {
    type Target = DataState;

    fn deref(&self) -> &DataState {
        &self.0
    }
}

impl Deref for DataState {
    type Target = Vault;

    fn deref(&self) -> &Vault {
        &self.vault
    }
}
