//! Per-token locks, which serialize updates of the same token on a node.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::ids::TenantId;
use moka::future::Cache;
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

const CACHED_MAX: u64 = 10_000;
/// Longer than any update takes, unless the database is failing.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Locks of the tokens that are being changed on this node.
///
/// Correctness does not depend on them: the row version detects conflicts, also between nodes. The locks reduce the
/// retries when many requests on one node change the same token.
pub struct TokenLocks(Cache<(i32, Uuid), Arc<Mutex<()>>>);

/// Guard that is held while a token is being changed.
pub(super) struct TokenLock {
    _guard: Option<OwnedMutexGuard<()>>,
}

impl Default for TokenLocks {
    fn default() -> Self {
        let locks = Cache::builder()
            .max_capacity(CACHED_MAX)
            .time_to_idle(2 * WAIT_MAX);
        Self(locks.build())
    }
}

impl TokenLocks {
    /// Waits for the lock; proceeds without it after `WAIT_MAX`.
    pub(super) async fn lock(&self, tenant: TenantId, key: &Uuid) -> TokenLock {
        let lock = self
            .0
            .get_with((tenant.number, *key), async { Arc::default() });
        let waiting = tokio::time::timeout(WAIT_MAX, lock.await.lock_owned());
        TokenLock {
            _guard: waiting.await.ok(),
        }
    }
}
