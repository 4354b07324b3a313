//! The proxy of an invocation, found by its key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cloakroom_core::access::Principal;
use cloakroom_core::authentication::keyless_principal;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use moka::future::Cache;
use uuid::Uuid;

use super::proxy::Proxy;
use super::row::{key_digest, key_digests};
use super::{Error, row, store};
use crate::server::ProxyServer;
use crate::transforms::{self, Configuration, Direction, Transforms};

const KEY_CHARS_MAX: usize = 100;
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

/// Definitions by the keyed digest of their key. Its lifetime bounds how long a deleted or rotated key still works.
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

/// Of the proxies, and of the applications and tenants they depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Generations {
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

    /// Invalidates all entries, including those of lookups in flight.
    pub(super) fn invalidate_all(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }
}

/// Finds a proxy by the key in `BT-PROXY-KEY`. The result is at most five seconds old.
pub async fn find_by_key(
    server: &ProxyServer,
    key: &str,
) -> Result<Option<Arc<ProxyDefinition>>, Error> {
    let is_key = !key.is_empty()
        && key.len() <= KEY_CHARS_MAX
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_key {
        return Ok(None);
    }
    let control = server.keys.control();
    let digest = key_digest(control, key);
    let cache = &server.definitions;
    // Read before the lookup: the rows may change while it runs.
    let generations = Generations {
        proxies: cache.generation.load(Ordering::SeqCst),
        principals: server.principals.generation(),
    };
    let started_at = Instant::now();
    if let Some(entry) = cache.entries.get(&digest).await
        && started_at < entry.until
        && entry.generations == generations
    {
        return Ok(Some(entry.definition));
    }
    // Boxed: most invocations hit the cache.
    let Some(definition) = Box::pin(look_up(server, &key_digests(control, key))).await? else {
        return Ok(None);
    };
    let definition = Arc::new(definition);
    let entry = CacheEntry {
        definition: Arc::clone(&definition),
        until: started_at + cache.ttl,
        generations,
    };
    cache.entries.insert(digest, entry).await;
    Ok(Some(definition))
}

async fn look_up(
    server: &ProxyServer,
    digests: &[Vec<u8>],
) -> Result<Option<ProxyDefinition>, Error> {
    let Some(stored) = store::find_by_key(&server.db, digests).await? else {
        return Ok(None);
    };
    let (tenant, id) = (stored.row.tenant_number, stored.row.id);
    let Some(anonymous) = keyless_principal(server, tenant, None, id).await? else {
        return Ok(None);
    };
    let proxy = row::open(server, anonymous.tenant, stored).await?;
    let application = match proxy.application {
        Some(application) => keyless_principal(server, tenant, Some(application), id).await?,
        None => None,
    };
    define(proxy, anonymous, application).map(Some)
}

fn define(
    proxy: Proxy,
    anonymous: Principal,
    application: Option<Principal>,
) -> Result<ProxyDefinition, Error> {
    let sealed = &proxy.sealed;
    let configuration = sealed.configuration.iter();
    let configuration: Configuration = configuration
        .map(|(name, value)| (name.clone(), Sensitive::new(value.clone())))
        .collect();
    let configuration = Arc::new(configuration);
    let mut identifiers = Vec::new();
    let mut compile = |direction, bodies: &[_]| {
        // Validated when the proxy was saved.
        let compiled = transforms::compile(direction, bodies, &mut identifiers);
        compiled.map_err(|_| Error::NotBuilt)
    };
    Ok(ProxyDefinition {
        tenant: anonymous.tenant,
        id: proxy.id,
        require_auth: sealed.require_auth,
        disable_detokenization: sealed.disable_detokenization,
        transforms: Transforms {
            application: application.map(Arc::new),
            configuration: Arc::clone(&configuration),
            request: compile(Direction::Request, &sealed.request.transforms)?,
            response: compile(Direction::Response, &sealed.response.transforms)?,
        },
        configuration,
        timeout: None,
        anonymous: Arc::new(anonymous),
        name: proxy.name,
        destination_url: proxy.destination_url,
    })
}
