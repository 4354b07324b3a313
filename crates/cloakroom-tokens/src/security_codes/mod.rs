//! Security codes of cards, stored separately from their tokens under short-lived keys.
//!
//! A key seals for one epoch and is destroyed everywhere when the last code that it sealed has reached its retention.
//! It exists in the memory of nodes and, wrapped by a key that every node unwraps at its start, in Redis; never in
//! PostgreSQL, a file or a log. Codes in a backup cannot be decrypted after that.
//!
//! The module that stores the token writes the row in the same statement: it gets a [`SealedCode`] from [`seal`]. Codes
//! are read with [`find`], or with [`open()`] if the row is already loaded.

mod check_redis;
mod fetch;
mod find;
mod lifetime;
mod live_keys;
mod open;
mod publish;
mod seal;
mod store;
mod sweep;
mod tend;

use std::time::Duration;

use cloakroom_core::vault::Vault;
use cloakroom_platform::telemetry::catalog;
use tokio::sync::Mutex;

use self::check_redis::PublishingPolicy;
pub use self::check_redis::{RedisPersists, check_redis};
pub use self::find::find;
use self::live_keys::LiveKeys;
pub use self::open::open;
pub use self::seal::{Retention, SealedCode, seal};
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;
pub use self::tend::tend;

/// Concurrent fetches are serialized per key by this many locks.
const FETCH_LOCKS: usize = 64;
/// Time limit of a request to Redis, including queueing and unwrapping.
const REDIS_TIMEOUT: Duration = Duration::from_millis(250);

/// State of this module on a node: the unexpired keys.
pub struct SecurityCodes {
    vault: Vault,
    keys: LiveKeys,
    publishing: PublishingPolicy,
    /// Held while creating the key of a new epoch; concurrent requests wait and use that key.
    create_lock: Mutex<()>,
    /// Held while fetching a key of another node; concurrent requests for it wait and use the result.
    fetch_locks: [Mutex<()>; FETCH_LOCKS],
}

impl SecurityCodes {
    pub fn new(vault: &Vault) -> Self {
        Self {
            vault: vault.clone(),
            keys: LiveKeys::default(),
            publishing: PublishingPolicy::new(&vault.config),
            create_lock: Mutex::default(),
            fetch_locks: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Number of keys in the memory of this node.
    pub fn live_keys(&self) -> usize {
        self.keys.count()
    }
}

/// Counts the outcome of an operation on a code; `outcome` is one of a few constants.
fn count(outcome: &'static str) {
    catalog::SECURITY_CODES.with([outcome]).increment(1);
}
