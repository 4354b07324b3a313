//! Publishes wrapped keys to Redis, for other nodes.

use std::sync::Arc;

use cloakroom_platform::clock::Uptime;
use cloakroom_platform::storage::RedisUnavailable;

use super::SecurityCodes;
use super::live_keys::LiveKey;
use super::store::{self, PublishedKey};

/// Publishes the keys that Redis does not have, each with its expiry.
///
/// The expiry is an absolute time on Redis's clock. A TTL would be extended by every delay in transit, by hours for a
/// stalled server, and a node's clock may be wrong.
pub(super) async fn publish(
    codes: &SecurityCodes,
    keys: &[Arc<LiveKey>],
) -> Result<(), RedisUnavailable> {
    let Some(redis) = &codes.vault.redis else {
        return Ok(());
    };
    let environment = codes.vault.keys.environment();
    codes.vault.keys.refresh_if_stale().await;
    let kek = codes.vault.keys.security_codes();
    // Redis is contacted nevertheless, which detects whether it is available.
    let keys = match codes.publishing.is_allowed() {
        true => keys,
        false => &[],
    };
    let mut wrapped = Vec::with_capacity(keys.len());
    for key in keys {
        // A key that cannot be wrapped now is retried in the next round.
        if let Ok(bytes) = key.wrapped(kek, environment).await {
            wrapped.push((key, bytes));
        }
    }
    let redis_time = store::clock(redis).await?;
    // Measured after the response, so that latency shortens the key's lifetime.
    let now = Uptime::now();
    let published: Vec<PublishedKey<'_>> = wrapped
        .into_iter()
        .map(|(key, wrapped)| PublishedKey {
            id: key.id,
            wrapped,
            expires_at: redis_time + key.lifetime.left(now),
        })
        .collect();
    store::publish(redis, environment, &published).await
}
