//! Publishing keys, wrapped, to where other nodes find them.

use std::sync::Arc;

use super::live_keys::LiveKey;
use super::store::{self, Published};
use crate::clock::Uptime;
use crate::storage::Away;
use crate::vault::Vault;

/// Publishes the keys that Redis does not have, each until the instant at which it ends here.
///
/// That instant is told as an absolute time on Redis's own clock. A time to live would grow by every
/// delay on the way, for a stalled server even by hours, and the clock of a node may be wrong.
pub(super) async fn publish(vault: &Vault, keys: &[Arc<LiveKey>]) -> Result<(), Away> {
    let Some(redis) = &vault.redis else {
        return Ok(());
    };
    let environment = vault.keys.environment();
    let mut wrapped = Vec::with_capacity(keys.len());
    for key in keys {
        // A key that cannot be wrapped now is tried again with the next round.
        if let Ok(bytes) = key.wrapped(vault.keys.root(), environment).await {
            wrapped.push((key, bytes));
        }
    }
    let theirs = store::clock(redis).await?;
    // Measured after the answer, so that time on the way shortens the life of a key.
    let now = Uptime::now();
    let published: Vec<Published<'_>> = wrapped
        .into_iter()
        .map(|(key, wrapped)| Published {
            id: key.id,
            wrapped,
            expires_at: theirs + key.life.left(now),
        })
        .collect();
    store::publish(redis, environment, &published).await
}
