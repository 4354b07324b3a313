//! How a node learns that keys were changed: a generation that it reads with its heartbeat.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::keys::store;
use crate::keys::{Error, Keyring, VAULT};

/// A node that has not read the generation for this long does so before it uses keys. Several heartbeats: on a healthy node,
/// no request ever waits for it.
const STALE_AFTER: Duration = Duration::from_secs(10);
/// Beyond this number of changed tenants, all keys are evicted.
const RELOADED_MAX: i64 = 1_000;

/// The newest generation of keys that this node has loaded.
pub(in crate::keys) struct Generation {
    known: AtomicI64,
    started_at: Instant,
    /// When it was last read, in milliseconds since `started_at`.
    read_at: AtomicU64,
    /// Held while keys of a new generation are loaded.
    learning: Mutex<()>,
}

impl Generation {
    pub(in crate::keys) fn new(known: i64) -> Self {
        Self {
            known: AtomicI64::new(known),
            started_at: Instant::now(),
            read_at: AtomicU64::new(0),
            learning: Mutex::default(),
        }
    }

    pub(in crate::keys) fn is_stale(&self) -> bool {
        let read_at = Duration::from_millis(self.read_at.load(Ordering::Relaxed));
        STALE_AFTER < self.started_at.elapsed().saturating_sub(read_at)
    }

    fn set(&self, generation: i64) {
        let elapsed = self.started_at.elapsed().as_millis();
        self.known.store(generation, Ordering::Release);
        self.read_at.store(
            u64::try_from(elapsed).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }
}

impl Keyring {
    /// The generation that this node acknowledges: keys of earlier ones are no longer cached.
    pub fn generation(&self) -> i64 {
        self.generation.known.load(Ordering::Acquire)
    }

    /// Loads the keys that changed since the known generation. Returns whether any did.
    ///
    /// The generation is not authenticated. A wrong one only makes this node load keys in vain, or too late: statements
    /// that store encrypted values check the version themselves.
    pub async fn learn(&self, newest: i64) -> Result<bool, Error> {
        let _learning = self.generation.learning.lock().await;
        let known = self.generation();
        if newest == known {
            self.generation.set(known);
            return Ok(false);
        }
        let db = &self.loader.db;
        let changed = store::list_changed_tenants(db, known, RELOADED_MAX).await?;
        // A lower one: SQL changed it, now or before.
        match newest < known || changed.len() as i64 == RELOADED_MAX {
            true => {
                self.reload_vault_keys().await?;
                self.tenants.evict_all();
            }
            false => {
                if changed.contains(&VAULT.number) {
                    self.reload_vault_keys().await?;
                }
                self.tenants.reload_cached(&changed).await?;
            }
        }
        self.generation.set(newest);
        Ok(true)
    }

    /// Reads the generation if the heartbeat did not. A failure is ignored: whatever the database does not answer, it does
    /// not store either.
    pub(in crate::keys) async fn learn_if_stale(&self) {
        if self.generation.is_stale() {
            self.catch_up().await;
        }
    }

    /// Reads the generation and loads what changed. Returns whether keys were loaded: rows that did not verify may do so now.
    pub async fn catch_up(&self) -> bool {
        match store::find_generation(&self.loader.db).await {
            Ok(newest) => self.learn(newest).await.unwrap_or(false),
            Err(_) => false,
        }
    }
}
