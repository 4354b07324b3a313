//! The key pairs of the vault that sign deliveries: loaded once, refreshed often, created with the first webhook.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use cloakroom_core::keys::{self, SigningKey};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use tokio::time::Instant;

/// How long a node may sign with a key after another one was created.
const REFRESH_PERIOD: Duration = Duration::from_secs(10);

/// A cache of the key pairs, newest first.
#[derive(Default)]
pub(crate) struct SigningKeys(ArcSwapOption<Loaded>);

struct Loaded {
    keys: Arc<Vec<SigningKey>>,
    at: Instant,
}

impl SigningKeys {
    /// The key pairs, newest first. The first one signs.
    pub(crate) async fn current(&self, vault: &Vault) -> Result<Arc<Vec<SigningKey>>, keys::Error> {
        if let Some(loaded) = &*self.0.load()
            && loaded.at.elapsed() < REFRESH_PERIOD
            && !loaded.keys.is_empty()
        {
            return Ok(loaded.keys.clone());
        }
        let loaded = Arc::new(Loaded {
            keys: Arc::new(vault.keys.load_signing_keys().await?),
            at: Instant::now(),
        });
        self.0.store(Some(loaded.clone()));
        Ok(loaded.keys.clone())
    }
}

/// Creates the first key pair unless there is one.
///
/// A lost key pair is not replaced: once there are webhooks (`is_in_use`), receivers know its public key.
pub async fn ensure_key(vault: &Vault, is_in_use: bool) -> Result<(), keys::Error> {
    if !vault.keys.load_signing_keys().await?.is_empty() {
        return Ok(());
    }
    if is_in_use {
        return Err(keys::Error::Missing("webhook signing key"));
    }
    create(vault, 0).await.map(drop)
}

/// Creates the next key pair, which signs from now on. Receivers can verify with both until the next rotation.
///
/// Returns the version of the new key pair.
pub async fn rotate_key(vault: &Vault) -> Result<u32, keys::Error> {
    let keys = vault.keys.load_signing_keys().await?;
    let newest = keys.first().map_or(0, |key| key.version);
    match create(vault, newest).await? {
        true => Ok(newest + 1),
        // Another process has rotated it at the same time.
        false => Err(storage::Error::RolledBack.into()),
    }
}

async fn create(vault: &Vault, newest: u32) -> Result<bool, keys::Error> {
    let transaction = vault.db.begin().await?;
    match vault.keys.create_signing_key(&transaction, newest).await {
        Ok(is_created) => {
            transaction.commit().await?;
            Ok(is_created)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}
