//! Cache of tenants' keys: refreshed in the background before it expires, and usable while the key provider is down.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cloakroom_crypto::random_bytes;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use moka::future::Cache;
use tokio::sync::Mutex;

use super::load::Loader;
use super::{Error, TenantKeys};

/// Part of the TTL after which the next use starts a refresh.
const REFRESH_AT: f64 = 0.75;
/// After a failed load, requests do not wait for another one for this long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A number of responses that is not reached.
const NEVER: u64 = u64::MAX;

/// Boxed, because most requests find their keys in the cache: their futures need not contain the calls of all providers.
type Loading<'a> = Pin<Box<dyn Future<Output = Result<Arc<TenantKeys>, Error>> + Send + 'a>>;

pub(super) struct TenantCache {
    loader: Arc<Loader>,
    ttl: Duration,
    grace: Duration,
    /// Evicts at the end of `grace`, which begins with the last successful load.
    entries: Cache<i32, Arc<Entry>>,
    /// Failed loads of tenants without an entry.
    failures: Cache<i32, Error>,
    /// Times that the provider was seen to respond.
    responses: AtomicU64,
}

/// The keys of one tenant, as loaded once.
struct Entry {
    keys: Arc<TenantKeys>,
    loaded_at: Instant,
    /// From this age on, a use starts a refresh in the background.
    refresh_after: Duration,
    /// From this age on, a use waits for a refresh.
    ttl: Duration,
    is_refreshing: AtomicBool,
    /// Held while refreshing: concurrent requests share the result. The last failure, if any.
    failure: Mutex<Option<(Instant, Error)>>,
    /// `responses` of the cache at the last failure; [`NEVER`] without one.
    failed_after: AtomicU64,
}

impl TenantCache {
    pub(super) fn new(loader: Arc<Loader>, config: &config::RootKey) -> Self {
        let capacity = config.cache_size as u64;
        Self {
            loader,
            ttl: config.cache_ttl,
            grace: config.grace,
            entries: Cache::builder()
                .max_capacity(capacity)
                .time_to_live(config.grace.max(config.cache_ttl))
                .build(),
            failures: Cache::builder()
                .max_capacity(capacity)
                .time_to_live(RETRY_AFTER)
                .build(),
            responses: AtomicU64::new(0),
        }
    }

    /// Returns the keys of a tenant. Within their TTL, nothing waits for the provider.
    pub(super) async fn get(self: &Arc<Self>, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        let Some(entry) = self.entries.get(&tenant.number).await else {
            let load: Loading<'_> = Box::pin(self.load(tenant));
            return load.await;
        };
        let age = entry.loaded_at.elapsed();
        if age < entry.refresh_after {
            return Ok(entry.keys.clone());
        }
        if age < entry.ttl {
            self.refresh_in_background(tenant, &entry);
            return Ok(entry.keys.clone());
        }
        let refresh: Loading<'_> = Box::pin(self.refresh(tenant, &entry));
        refresh.await
    }

    /// Loads the keys of a tenant whatever is cached, because a row names a version that the cached keys lack.
    pub(super) async fn reload(&self, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        let keys = Arc::new(self.load_keys(tenant).await?);
        self.insert(tenant, &keys).await;
        Ok(keys)
    }

    pub(super) async fn evict(&self, tenant: TenantId) {
        self.entries.invalidate(&tenant.number).await;
    }

    pub(super) fn evict_all(&self) {
        self.entries.invalidate_all();
    }

    /// Loads the keys of these tenants again, as far as they are cached.
    pub(super) async fn reload_cached(&self, tenants: &[i32]) -> Result<(), Error> {
        for number in tenants {
            if let Some(entry) = self.entries.get(number).await {
                let reload: Loading<'_> = Box::pin(self.reload(entry.keys.tenant));
                reload.await?;
            }
        }
        Ok(())
    }

    /// Age of the oldest keys that could not be refreshed; zero if the provider has responded since.
    ///
    /// Keys that are not in use are not refreshed, so their age says nothing about the provider.
    pub(super) fn oldest_failing_age(&self) -> Duration {
        let responses = self.responses.load(Ordering::Relaxed);
        let is_failing = |entry: &Entry| entry.failed_after.load(Ordering::Relaxed) == responses;
        let failing = self.entries.iter().filter(|(_, it)| is_failing(it));
        let ages = failing.map(|(_, entry)| entry.loaded_at.elapsed());
        ages.max().unwrap_or_default()
    }

    /// Records that the provider responded.
    pub(super) fn count_response(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
    }

    async fn load_keys(&self, tenant: TenantId) -> Result<TenantKeys, Error> {
        let keys = self.loader.load_tenant(tenant).await?;
        self.count_response();
        Ok(keys)
    }

    /// Loads the keys of a tenant without an entry. Concurrent requests share one load.
    async fn load(&self, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        if let Some(error) = self.failures.get(&tenant.number).await {
            return Err(error);
        }
        let load = async {
            let keys = Arc::new(self.load_keys(tenant).await?);
            Ok(self.entry(&keys))
        };
        let loaded = self.entries.try_get_with(tenant.number, load).await;
        match loaded {
            Ok(entry) => Ok(entry.keys.clone()),
            Err(error) => {
                let error = Error::clone(&error);
                if error.is_outage() {
                    self.failures.insert(tenant.number, error.clone()).await;
                }
                Err(error)
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a refresh outlives the request that starts it, and is bounded by the provider's deadline"
    )]
    fn refresh_in_background(self: &Arc<Self>, tenant: TenantId, entry: &Arc<Entry>) {
        if entry.is_refreshing.swap(true, Ordering::Relaxed) {
            return;
        }
        let (cache, entry) = (self.clone(), entry.clone());
        tokio::spawn(async move {
            // A failure is logged; the keys remain in use until the end of their TTL.
            let _ = cache.refresh(tenant, &entry).await;
            entry.is_refreshing.store(false, Ordering::Relaxed);
        });
    }

    /// Replaces an entry. While the provider is unavailable, returns the old keys until the end of `grace`.
    async fn refresh(&self, tenant: TenantId, entry: &Entry) -> Result<Arc<TenantKeys>, Error> {
        let mut failure = entry.failure.lock().await;
        let current = self.entries.get(&tenant.number).await;
        if let Some(current) = current.filter(|current| entry.loaded_at < current.loaded_at) {
            return Ok(current.keys.clone());
        }
        if let Some((at, error)) = &*failure
            && at.elapsed() < RETRY_AFTER
        {
            return self.keys_in_grace(entry, error);
        }
        match self.load_keys(tenant).await {
            Ok(keys) => {
                let keys = Arc::new(keys);
                self.insert(tenant, &keys).await;
                Ok(keys)
            }
            Err(error) => {
                if let Error::Provider(reason) = &error {
                    tracing::warn!(
                        error.kind = reason.kind(),
                        "the key provider is unavailable; cached keys remain in use until the end of root_key.grace"
                    );
                }
                if error.is_outage() {
                    let responses = self.responses.load(Ordering::Relaxed);
                    entry.failed_after.store(responses, Ordering::Relaxed);
                }
                *failure = Some((Instant::now(), error.clone()));
                self.keys_in_grace(entry, &error)
            }
        }
    }

    fn keys_in_grace(&self, entry: &Entry, error: &Error) -> Result<Arc<TenantKeys>, Error> {
        match error.is_outage() && entry.loaded_at.elapsed() < self.grace {
            true => Ok(entry.keys.clone()),
            false => Err(error.clone()),
        }
    }

    async fn insert(&self, tenant: TenantId, keys: &Arc<TenantKeys>) {
        self.entries.insert(tenant.number, self.entry(keys)).await;
    }

    /// Shortens the TTL by up to a tenth at random, so that nodes and tenants do not refresh at the same time.
    fn entry(&self, keys: &Arc<TenantKeys>) -> Arc<Entry> {
        let [random] = random_bytes::<1>();
        let ttl = self.ttl - self.ttl.mul_f64(f64::from(random) / 2550.0);
        Arc::new(Entry {
            keys: keys.clone(),
            loaded_at: Instant::now(),
            refresh_after: ttl.mul_f64(REFRESH_AT),
            ttl,
            is_refreshing: AtomicBool::new(false),
            failure: Mutex::default(),
            failed_after: AtomicU64::new(NEVER),
        })
    }
}
