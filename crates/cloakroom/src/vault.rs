//! What a running vault has; handed to every verb.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use crate::access::Authenticator;
use crate::api::BodyLimits;
use crate::config::Config;
use crate::keys::{Keyring, RootKey};
use crate::storage::{self, Db};
use crate::tokens::Shelves;
use crate::{access, keys};

/// A shared handle to a running vault.
#[derive(Clone)]
pub struct Vault(Arc<Parts>);

/// The parts of a vault.
pub struct Parts {
    pub config: Config,
    pub db: Db,
    pub keys: Keyring,
    pub authenticator: Authenticator,
    pub shelves: Shelves,
}

impl Deref for Vault {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Access(#[from] access::Error),
}

impl Vault {
    /// Opens the vault that the configuration describes.
    ///
    /// Refuses a database that lacks migrations, belongs to another environment, or was sealed under
    /// another root key.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let root = RootKey::load(&config.root_key)?;
        let db = Db::open(&config.database)?;
        storage::check(&*db.connection().await?).await?;
        let environment = config.vault.environment.as_str();
        let keys = Keyring::load(&db, root, environment, &config.root_key).await?;
        Ok(Self(Arc::new(Parts {
            authenticator: Authenticator::new(&config.access),
            shelves: Shelves::default(),
            config,
            db,
            keys,
        })))
    }
}

impl FromRef<Vault> for BodyLimits {
    fn from_ref(vault: &Vault) -> Self {
        let http = &vault.config.http;
        Self {
            max_bytes: http.max_body_bytes,
            timeout: http.body_timeout,
        }
    }
}
