//! The key pairs of the vault that sign deliveries: loaded once, refreshed often, created with the first webhook.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use cloakroom_core::access::{Bucket, LockError};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::keys::{self, SigningKey};
use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a node may sign with a key after another one was created.
const REFRESH_PERIOD: Duration = Duration::from_secs(10);

/// A cache of the key pairs, newest first.
#[derive(Default)]
pub(crate) struct SigningKeys {
    loaded: ArcSwapOption<Loaded>,
    /// Held while the key pairs are loaded, so that concurrent deliveries load them once.
    loading: Mutex<()>,
}

struct Loaded {
    keys: Arc<Vec<SigningKey>>,
    at: Instant,
}

impl SigningKeys {
    /// The key pairs, newest first. The first one signs.
    ///
    /// While the database or the key provider is unavailable, the last known ones.
    pub(crate) async fn current(&self, vault: &Vault) -> Result<Arc<Vec<SigningKey>>, keys::Error> {
        if let Some(keys) = self.fresh() {
            return Ok(keys);
        }
        let _loading = self.loading.lock().await;
        if let Some(keys) = self.fresh() {
            return Ok(keys);
        }
        let keys = match vault.keys.load_signing_keys().await {
            Ok(keys) => Arc::new(keys),
            Err(error @ (keys::Error::Storage(_) | keys::Error::Provider(_))) => {
                let last = self.loaded.load();
                let last = last.as_ref().filter(|loaded| !loaded.keys.is_empty());
                last.ok_or(error)?.keys.clone()
            }
            Err(error) => return Err(error),
        };
        let at = Instant::now();
        let loaded = Loaded {
            keys: keys.clone(),
            at,
        };
        self.loaded.store(Some(Arc::new(loaded)));
        Ok(keys)
    }

    fn fresh(&self) -> Option<Arc<Vec<SigningKey>>> {
        let loaded = self.loaded.load();
        let loaded = loaded.as_ref()?;
        let is_fresh = loaded.at.elapsed() < REFRESH_PERIOD && !loaded.keys.is_empty();
        is_fresh.then(|| loaded.keys.clone())
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

/// Creates a key pair with its audit log entry, which belongs to no tenant.
async fn create(vault: &Vault, newest: u32) -> Result<bool, keys::Error> {
    let at = vault.clock.now().await?;
    let begun = access_change::begin(vault, keys::VAULT, &[Bucket::KEYS]).await;
    let mut change = begun.map_err(not_locked)?;
    let created = vault.keys.create_signing_key(&change, newest, at).await;
    let created = created.and_then(|created| match created {
        Some(keys) => change.change_keys(keys).map_err(not_locked).map(|()| true),
        None => Ok(false),
    });
    if !matches!(created, Ok(true)) {
        change.roll_back().await;
        return created;
    }
    let id = format!("signing-key-{}", newest + 1);
    let (operation, entity) = (Operation::Create, EntityKind::Webhook);
    let entry = Entry::by_system(keys::VAULT.number, operation, entity, id);
    change.commit(&[entry]).await?;
    Ok(true)
}

fn not_locked(error: LockError) -> keys::Error {
    match error {
        LockError::Stale => keys::Error::AlteredKeyset("the vault".to_owned()),
        LockError::Storage(error) => error.into(),
    }
}
