//! Pre-configured proxies as invocations need them, and their cache.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cloakroom_core::access::Principal;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use moka::future::Cache;
use uuid::Uuid;

use crate::allowed_requests::AllowedRequests;
use crate::transforms::{Configuration, Transforms};

const CACHED_MAX: u64 = 10_000;
/// How long a key without a proxy is not looked up again.
const UNKNOWN_TTL: Duration = Duration::from_secs(1);

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
    pub allowed_requests: AllowedRequests,
    pub configuration: Arc<Configuration>,
    pub transforms: Transforms,
    /// Replaces the time limit of the destination.
    pub timeout: Option<Duration>,
    /// The principal of invocations without a key: the tenant with its settings and quotas, and no permissions. The id of
    /// the proxy stands for application and key in the audit log.
    pub anonymous: Arc<Principal>,
}

/// Definitions by the digest of their key. The TTL bounds how long a deleted or rotated key still works.
pub struct DefinitionCache {
    entries: Cache<[u8; 32], CacheEntry>,
    /// Held by the invocation that looks a key up; the others wait for its result.
    lookups: Cache<[u8; 32], Arc<tokio::sync::Mutex<()>>>,
    ttl: Duration,
    changes: Mutex<Changes>,
}

#[derive(Clone)]
struct CacheEntry {
    /// `None` if no proxy has the key.
    definition: Option<Arc<ProxyDefinition>>,
    until: Instant,
    generations: Generations,
}

/// Changes of proxies through this node. A change makes only entries of its tenant stale.
#[derive(Default)]
struct Changes {
    count: u64,
    last_by_tenant: HashMap<i32, u64>,
}

/// Of the proxies, and of the applications and tenants they depend on, when a lookup started.
#[derive(Clone, Copy)]
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
            lookups: Cache::new(CACHED_MAX),
            ttl: config.key_cache_ttl,
            changes: Mutex::default(),
        }
    }

    /// The current generations. Read before a lookup: the rows may change while it runs.
    pub fn generations(&self, principals: u64) -> Generations {
        Generations {
            proxies: self.changes().count,
            principals,
        }
    }

    /// The result of an earlier lookup, which is `None` if no proxy has the key.
    pub async fn find(
        &self,
        digest: &[u8; 32],
        principals: u64,
    ) -> Option<Option<Arc<ProxyDefinition>>> {
        let entry = self.entries.get(digest).await?;
        let is_current = Instant::now() < entry.until && self.is_current(&entry, principals);
        is_current.then_some(entry.definition)
    }

    fn is_current(&self, entry: &CacheEntry, principals: u64) -> bool {
        let changed_at = |definition: &Arc<ProxyDefinition>| {
            let tenant = definition.tenant.number;
            self.changes().last_by_tenant.get(&tenant).copied()
        };
        let changed_at = entry.definition.as_ref().and_then(changed_at);
        let Generations {
            proxies,
            principals: of_entry,
        } = entry.generations;
        of_entry == principals && changed_at.is_none_or(|changed_at| changed_at <= proxies)
    }

    /// The lock of the lookup of a key.
    pub async fn lookup(&self, digest: [u8; 32]) -> Arc<tokio::sync::Mutex<()>> {
        self.lookups
            .get_with(digest, async { Arc::default() })
            .await
    }

    /// Inserts the result of a lookup that started at `started_at`.
    pub async fn insert(
        &self,
        digest: [u8; 32],
        definition: Option<Arc<ProxyDefinition>>,
        started_at: Instant,
        generations: Generations,
    ) {
        let ttl = match definition {
            Some(_) => self.ttl,
            None => self.ttl.min(UNKNOWN_TTL),
        };
        let entry = CacheEntry {
            definition,
            until: started_at + ttl,
            generations,
        };
        self.entries.insert(digest, entry).await;
    }

    /// Invalidates the entries of a tenant, including those of lookups in flight.
    pub fn invalidate(&self, tenant: TenantId) {
        let mut changes = self.changes();
        changes.count += 1;
        let count = changes.count;
        changes.last_by_tenant.insert(tenant.number, count);
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
