//! The keyring of a running node: the system keys, and a bounded cache of tenants' keys.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cloakroom_crypto::Sensitive;
use cloakroom_custody::RootKeys;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Db;
use cloakroom_platform::telemetry::catalog;

use super::keyset::{KeysetAuthority, VAULT};
use super::load::Loader;
use super::rotation::Generation;
use super::store;
use super::tenant_cache::TenantCache;
use super::{AuditAuthority, ControlKey, Error, Record, SecurityCodeKek, TenantKeys};

/// Unwraps keys on demand and caches them for a limited time.
pub struct Keyring {
    pub(super) loader: Arc<Loader>,
    control: Arc<ControlKey>,
    audit_authority: Arc<AuditAuthority>,
    security_codes: SecurityCodeKek,
    pub(super) tenants: Arc<TenantCache>,
    pub(super) generation: Generation,
}

impl Keyring {
    /// Loads the system keys; tenants' keys are loaded on demand.
    pub async fn load(
        db: &Db,
        roots: RootKeys,
        environment: &str,
        config: &config::RootKey,
        authority: Arc<dyn KeysetAuthority>,
    ) -> Result<Self, Error> {
        let loader = Arc::new(Loader {
            db: db.clone(),
            roots,
            environment: environment.into(),
            authority,
            control: OnceLock::new(),
        });
        loader.check_environment().await?;
        // Before any key is loaded: what changes later has a higher one.
        let generation = Generation::new(store::find_generation(&loader.db).await?);
        let control = loader.load_system_keys().await?;
        let control = control.into_iter().map(Arc::new).collect();
        let control = Arc::new(ControlKey::new(control));
        // From here on, every keyset is verified; the next statement verifies the one that the control key is in.
        let control = loader.control.get_or_init(|| control).clone();
        let audit_authority = Arc::new(AuditAuthority::load(&loader).await?);
        let security_codes = loader.load_system_keys().await?;
        loader.roots.start_serving();
        Ok(Self {
            tenants: Arc::new(TenantCache::new(loader.clone(), config)),
            loader,
            generation,
            control,
            audit_authority,
            security_codes: SecurityCodeKek::new(security_codes),
        })
    }

    pub fn control(&self) -> &ControlKey {
        &self.control
    }

    /// The control key, for writers that outlive a request.
    pub fn shared_control(&self) -> Arc<ControlKey> {
        self.control.clone()
    }

    pub fn audit_authority(&self) -> &Arc<AuditAuthority> {
        &self.audit_authority
    }

    /// Wraps security-code keys.
    pub fn security_codes(&self) -> &SecurityCodeKek {
        &self.security_codes
    }

    pub fn root(&self) -> &RootKeys {
        &self.loader.roots
    }

    pub fn environment(&self) -> &str {
        &self.loader.environment
    }

    /// Returns the keys of a tenant, from the cache while they are fresh.
    ///
    /// While the key provider is unavailable, keys that were loaded within the last `root_key.grace` remain usable.
    pub async fn of(&self, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        self.refresh_if_stale().await;
        self.tenants.get(tenant).await
    }

    /// Replaces cached keys after the database rejected a value that was sealed under an old version.
    pub async fn replace_stale(&self, tenant: TenantId) {
        catalog::KEYS_STALE_WRITES.increment(1);
        // The control key may be the one that was replaced.
        self.catch_up().await;
        // The next use loads them, and reports a failure.
        self.tenants.evict(tenant).await;
    }

    /// Evicts a tenant's keys from the cache of this node. Keys of the vault are loaded again.
    pub async fn evict(&self, owner: TenantId) {
        match owner == VAULT {
            // A failure is repeated with the next heartbeat.
            true => {
                self.catch_up().await;
            }
            false => self.tenants.evict(owner).await,
        }
    }

    /// Loads the keys of the vault again.
    pub(super) async fn reload_vault_keys(&self) -> Result<(), Error> {
        self.loader.reload_control(&self.control).await?;
        self.audit_authority.reload().await?;
        self.security_codes
            .replace(self.loader.load_system_keys().await?);
        Ok(())
    }

    /// Reads which keys were changed, unless this node has done so lately.
    pub async fn refresh_if_stale(&self) {
        if self.generation.is_stale() {
            // Boxed, because most callers do not need it.
            Box::pin(self.learn_if_stale()).await;
        }
    }

    /// Age of the oldest tenant keys that could not be refreshed; zero while the key provider responds.
    pub fn oldest_failing_age(&self) -> Duration {
        self.tenants.oldest_failing_age()
    }

    /// Calls the key provider if its last call got no response. Without requests, nothing else notices the end of an outage.
    pub async fn probe_provider(&self) {
        let roots = self.root();
        if !roots.unavailable_for().is_zero() && roots.probe(self.environment()).await {
            self.tenants.count_response();
        }
    }

    /// Opens a sealed value of a tenant; reloads the keys if it names an unknown version.
    pub async fn open(
        &self,
        tenant: TenantId,
        record: &Record<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        let keys = self
            .reload_if(tenant, |keys| keys.data.lacks_key_of(sealed))
            .await?;
        keys.open(record, sealed)
    }

    /// Opens a stored response; reloads the keys if it names an unknown version.
    pub async fn open_response(
        &self,
        tenant: TenantId,
        record: &Record<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        let keys = self
            .reload_if(tenant, |keys| keys.reply.lacks_key_of(sealed))
            .await?;
        keys.open_response(record, sealed)
    }

    /// Returns the keys of a tenant, reloaded if the cached ones lack a version.
    async fn reload_if(
        &self,
        tenant: TenantId,
        lacks: impl FnOnce(&TenantKeys) -> bool,
    ) -> Result<Arc<TenantKeys>, Error> {
        let keys = self.of(tenant).await?;
        if !lacks(&keys) {
            return Ok(keys);
        }
        self.tenants.reload(tenant).await
    }
}
