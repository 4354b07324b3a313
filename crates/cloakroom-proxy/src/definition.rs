//! Pre-configured proxies as invocations need them, and their cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cloakroom_core::access::Principal;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use moka::future::Cache;
use uuid::Uuid;

use crate::transforms::{Configuration, Transforms};

const CACHED_MAX: u64 = 10_000;

/// A pre-configured proxy as an invocation needs it.
pub struct ProxyDefinition {
    pub tenant: TenantId,
    pub id: Uuid,
    pub name: String,
    /// Validated when it was saved; checked again at each invocation.
    pub destination_url: String,
    /// Whether invocations require a key with `proxy:invoke`.
    pub require_auth: bool,
    /// Whether expressions of the caller are sent as they are.
    pub disable_detokenization: bool,
    pub configuration: Arc<Configuration>,
    pub transforms: Transforms,
    /// Replaces the time limit of the destination.
    pub timeout: Option<Duration>,
    /// The principal of invocations without a key: the tenant with its settings and quotas, and no permissions. The id of
    /// the proxy stands for application and key in the audit log.
    pub anonymous: Arc<Principal>,
}

/// Definitions by the keyed digest of their key. The TTL bounds how long a deleted or rotated key still works.
pub struct DefinitionCache {
    entries: Cache<[u8; 32], CacheEntry>,
    ttl: Duration,
    /// Incremented by every change of a proxy through this node.
    generation: AtomicU64,
}

#[derive(Clone)]
struct CacheEntry {
    definition: Arc<ProxyDefinition>,
    until: Instant,
    generations: Generations,
}

/// Of the proxies, and of the applications and tenants they depend on. An entry of other generations is stale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Generations {
    proxies: u64,
    principals: u64,
}

impl DefinitionCache {
    pub fn new(config: &config::Access) -> Self {
        Self {
            entries: Cache::builder()
                .max_capacity(CACHED_MAX)
                .time_to_live(config.key_cache_ttl)
                .build(),
            ttl: config.key_cache_ttl,
            generation: AtomicU64::new(0),
        }
    }

    /// The current generations. Read before a lookup: the rows may change while it runs.
    pub fn generations(&self, principals: u64) -> Generations {
        Generations {
            proxies: self.generation.load(Ordering::SeqCst),
            principals,
        }
    }

    pub async fn find(
        &self,
        digest: &[u8; 32],
        generations: Generations,
    ) -> Option<Arc<ProxyDefinition>> {
        let entry = self.entries.get(digest).await?;
        let is_current = Instant::now() < entry.until && entry.generations == generations;
        is_current.then_some(entry.definition)
    }

    /// Inserts the result of a lookup that started at `started_at`.
    pub async fn insert(
        &self,
        digest: [u8; 32],
        definition: &Arc<ProxyDefinition>,
        started_at: Instant,
        generations: Generations,
    ) {
        let entry = CacheEntry {
            definition: Arc::clone(definition),
            until: started_at + self.ttl,
            generations,
        };
        self.entries.insert(digest, entry).await;
    }

    /// Invalidates all entries, including those of lookups in flight.
    pub fn invalidate_all(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }
}
