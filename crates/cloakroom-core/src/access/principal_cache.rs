//! Cache of authenticated principals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cloakroom_platform::config;
use moka::future::Cache;

use super::Principal;

/// Cache of authenticated principals by the digest of the API key.
///
/// Entries are found by the digest of the whole key, not by its lookup part: a wrong secret takes as long as an unknown
/// key. The TTL bounds how long a deleted key still works on this node.
pub struct PrincipalCache {
    pub(crate) entries: Cache<[u8; 32], CacheEntry>,
    pub(crate) ttl: Duration,
    /// Incremented by every invalidation; entries of an earlier generation are stale.
    generation: AtomicU64,
}

#[derive(Clone)]
pub(crate) struct CacheEntry {
    pub(crate) principal: Arc<Principal>,
    /// Measured from before the lookup: the row may change while the query runs.
    pub(crate) until: Instant,
    pub(crate) generation: u64,
}

impl PrincipalCache {
    pub fn new(config: &config::Access) -> Self {
        let entries = Cache::builder()
            .max_capacity(config.key_cache_size as u64)
            .time_to_live(config.key_cache_ttl)
            .build();
        Self {
            entries,
            ttl: config.key_cache_ttl,
            generation: AtomicU64::new(0),
        }
    }

    /// Invalidates all entries after a key or an application was changed or deleted through this node. Lookups in
    /// flight, which may have read the old rows, are invalidated too.
    pub fn invalidate_all(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Incremented by every invalidation, for caches whose entries depend on applications and tenants.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }
}
