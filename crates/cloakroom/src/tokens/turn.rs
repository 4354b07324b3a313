//! Taking turns: requests that change the same token would otherwise undo each other's work.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

use crate::ids::TenantId;

const REMEMBERED_MAX: u64 = 10_000;
/// Longer than any change takes, unless the database is in trouble.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tokens that are being changed on this node.
///
/// Nothing depends on it: the row's version decides who was first, also between nodes. Turns only
/// spare the many on one node from being outrun again and again.
pub struct Turns(Cache<(i32, Uuid), Arc<Mutex<()>>>);

/// Held while a token is being changed.
pub(super) struct Turn {
    _guard: Option<OwnedMutexGuard<()>>,
}

impl Default for Turns {
    fn default() -> Self {
        let turns = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_idle(2 * PATIENCE);
        Self(turns.build())
    }
}

impl Turns {
    /// Waits for the turn; whoever waits too long goes without.
    pub(super) async fn take(&self, tenant: TenantId, key: &Uuid) -> Turn {
        let turn = self
            .0
            .get_with((tenant.number, *key), async { Arc::default() });
        let waiting = tokio::time::timeout(PATIENCE, turn.await.lock_owned());
        Turn {
            _guard: waiting.await.ok(),
        }
    }
}
