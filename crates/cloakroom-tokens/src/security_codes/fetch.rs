//! Fetches keys that other nodes created.

use std::sync::Arc;

use cloakroom_core::keys::VAULT;
use cloakroom_platform::clock::Uptime;
use cloakroom_platform::storage::Redis;
use tokio::time::timeout;

use super::lifetime::Lifetime;
use super::live_keys::{KeyId, LiveKey};
use super::{FETCH_LOCKS, REDIS_TIMEOUT, SecurityCodes, store};

/// Why a key is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    /// Expired, or lost with every node that held it.
    Gone,
    /// Redis is unavailable.
    Unreachable,
    /// The value stored under this id is not that key.
    Altered,
}

/// Returns the key with this id, from memory or from Redis.
pub(super) async fn find_or_fetch(
    codes: &SecurityCodes,
    id: KeyId,
) -> Result<Arc<LiveKey>, KeyError> {
    // The end in the id is authenticated with the key: no value of Redis or PostgreSQL can postpone it.
    let now = codes.vault.clock.now().await;
    if id.left(now.map_err(|_| KeyError::Unreachable)?).is_zero() {
        return Err(KeyError::Gone);
    }
    if let Some(key) = codes.keys.find(id, Uptime::now()) {
        return Ok(key);
    }
    let Some(redis) = &codes.vault.redis else {
        return Err(KeyError::Gone);
    };
    timeout(REDIS_TIMEOUT, fetch(codes, redis, id))
        .await
        .unwrap_or(Err(KeyError::Unreachable))
}

async fn fetch(codes: &SecurityCodes, redis: &Redis, id: KeyId) -> Result<Arc<LiveKey>, KeyError> {
    let index = usize::from(id.as_bytes()[15]) % FETCH_LOCKS;
    let _guard = codes.fetch_locks[index].lock().await;
    // Measured before the request, so that latency shortens the key's lifetime.
    let started_at = Uptime::now();
    if let Some(key) = codes.keys.find(id, started_at) {
        return Ok(key);
    }
    let environment = codes.vault.keys.environment();
    let found = store::fetch(redis, environment, id)
        .await
        .map_err(|_| KeyError::Unreachable)?
        .ok_or(KeyError::Gone)?;
    // A key that is evicted too early is fetched again; Redis cannot extend a lifetime.
    let now = codes.vault.clock.now().await;
    let left = found
        .left
        .min(id.left(now.map_err(|_| KeyError::Unreachable)?));
    let lifetime = Lifetime::for_fetched_key(started_at, left);
    let kek = codes.vault.keys.security_codes();
    if kek.lacks_version_of(&found.wrapped) {
        // The key was rotated, and this node has not learned of it yet.
        codes.vault.keys.evict(VAULT).await;
    }
    let key = LiveKey::unwrap(id, lifetime, &found.wrapped, kek, environment)
        .map_err(|_| KeyError::Altered)?;
    let key = Arc::new(key);
    codes.keys.cache_fetched(key.clone());
    Ok(key)
}
