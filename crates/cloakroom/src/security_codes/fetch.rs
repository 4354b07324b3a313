//! Fetching a key that another node made.

use std::sync::Arc;

use tokio::time::timeout;

use super::life::Life;
use super::live_keys::{KeyId, LiveKey};
use super::{LANES, WAIT_MAX, store};
use crate::clock::Uptime;
use crate::keys;
use crate::storage::Redis;
use crate::vault::Vault;

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Its time has come, or everyone who had it is gone.
    Gone,
    /// Redis or the holder of the root key does not answer.
    Unreachable,
    /// What is there under its name is not that key.
    Altered,
}

/// The key of this name: from memory, or else from Redis.
pub(super) async fn key_of(vault: &Vault, id: KeyId) -> Result<Arc<LiveKey>, Absence> {
    if let Some(key) = vault.security_codes.keys.find(id, Uptime::now()) {
        return Ok(key);
    }
    let Some(redis) = &vault.redis else {
        return Err(Absence::Gone);
    };
    timeout(WAIT_MAX, fetch(vault, redis, id))
        .await
        .unwrap_or(Err(Absence::Unreachable))
}

async fn fetch(vault: &Vault, redis: &Redis, id: KeyId) -> Result<Arc<LiveKey>, Absence> {
    let codes = &vault.security_codes;
    let lane = usize::from(id.as_bytes()[0]) % LANES;
    let _turn = codes.fetching[lane].lock().await;
    // Measured before asking, so that time on the way shortens the life of a key.
    let asked_at = Uptime::now();
    if let Some(key) = codes.keys.find(id, asked_at) {
        return Ok(key);
    }
    let environment = vault.keys.environment();
    let found = store::fetch(redis, environment, id)
        .await
        .map_err(|_| Absence::Unreachable)?
        .ok_or(Absence::Gone)?;
    // A key that is forgotten too early is fetched again; Redis cannot make one live longer.
    let settings = &vault.config.security_codes;
    let left = found.left.min(settings.epoch + settings.retention);
    let life = Life::of_fetched_key(asked_at, left);
    let root = vault.keys.root();
    let key = LiveKey::unwrap(id, life, &found.wrapped, root, environment)
        .await
        .map_err(|error| match error {
            keys::Error::ProviderUnavailable => Absence::Unreachable,
            _ => Absence::Altered,
        })?;
    let key = Arc::new(key);
    codes.keys.remember(key.clone());
    Ok(key)
}
