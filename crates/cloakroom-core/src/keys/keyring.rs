//! The keyring of a running node: the system keys, and a bounded cache of tenants' keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_crypto::{
    Authenticates, Key, Purpose, RootKek, SealsRecords, Sensitive, TenantKek, WrapContext, Wraps,
    random_bytes,
};
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Db;
use moka::Expiry;
use moka::future::Cache;

use super::mac_keys::MacKeys;
use super::store::{self, KeyRow};
use super::tenant_keys::SealingKeys;
use super::{AuditAuthority, ControlKey, Error, Record, RootKey, State, TenantKeys};

/// Unwraps keys on demand and caches them for a limited time.
pub struct Keyring {
    pub(super) db: Db,
    pub(super) root: Arc<RootKey>,
    pub(super) environment: Arc<str>,
    control: Arc<ControlKey>,
    audit_authority: Arc<AuditAuthority>,
    /// Used without a query. Concurrent misses for one tenant share one load.
    pub(super) fresh: Cache<i32, Arc<TenantKeys>>,
    /// Used only while the key provider is unavailable.
    pub(super) fallback: Cache<i32, Arc<TenantKeys>>,
}

impl Keyring {
    /// Loads the system keys; tenants' keys are loaded on demand.
    pub async fn load(
        db: &Db,
        root: RootKey,
        environment: &str,
        config: &config::RootKey,
    ) -> Result<Self, Error> {
        check_environment(db, environment).await?;
        let root = Arc::new(root);
        let control = Arc::new(load_system_keys(db, &root, environment).await?);
        let environment: Arc<str> = environment.into();
        let audit_authority = AuditAuthority::load(db, &root, &environment).await?;
        let capacity = config.cache_size as u64;
        Ok(Self {
            db: db.clone(),
            root,
            environment,
            control,
            audit_authority: Arc::new(audit_authority),
            fresh: Cache::builder()
                .max_capacity(capacity)
                .expire_after(Jittered(config.cache_ttl))
                .build(),
            fallback: Cache::builder()
                .max_capacity(capacity)
                .time_to_live(config.grace)
                .build(),
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

    pub fn root(&self) -> &RootKey {
        &self.root
    }

    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns the keys of a tenant, from the cache while they are fresh.
    ///
    /// While the key provider is unavailable, keys that were loaded within the last `root_key.grace` remain usable.
    pub async fn of(&self, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        if let Some(keys) = self.fresh.get(&tenant.number).await {
            return Ok(keys);
        }
        // Boxed: most requests hit the cache.
        Box::pin(self.look_up(tenant)).await
    }

    async fn look_up(&self, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        let load = async {
            let keys = Arc::new(self.load_tenant(tenant).await?);
            self.fallback.insert(tenant.number, keys.clone()).await;
            Ok(keys)
        };
        match self.fresh.try_get_with(tenant.number, load).await {
            Ok(keys) => Ok(keys),
            Err(error) => self.fall_back(tenant, &error).await,
        }
    }

    async fn fall_back(&self, tenant: TenantId, error: &Error) -> Result<Arc<TenantKeys>, Error> {
        match (error, self.fallback.get(&tenant.number).await) {
            (Error::ProviderUnavailable, Some(keys)) => {
                tracing::warn!("the key provider is unavailable; using cached keys");
                Ok(keys)
            }
            _ => Err(error.clone()),
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
        self.fresh.invalidate(&tenant.number).await;
        self.of(tenant).await
    }

    async fn load_tenant(&self, tenant: TenantId) -> Result<TenantKeys, Error> {
        let rows = store::list_tenant_keys(&self.db, tenant).await?;
        let mut keks = Vec::new();
        for row in usable::<TenantKek>(&rows) {
            let context = self.context(tenant, row.version);
            keks.push(
                self.root
                    .unwrap::<TenantKek>(&row.wrapped, &context)
                    .await?,
            );
        }
        Ok(TenantKeys {
            environment: self.environment.clone(),
            tenant,
            data: self.sealing(tenant, &keks, &rows)?,
            reply: self.sealing(tenant, &keks, &rows)?,
            fingerprinting: self.active(tenant, &keks, &rows)?,
            index: self.active(tenant, &keks, &rows)?,
            request: self.active(tenant, &keks, &rows)?,
        })
    }

    /// Unwraps every usable version of a sealing key; one must be active.
    fn sealing<P: SealsRecords>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<SealingKeys<P>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let active = usable::<P>(rows)
            .find(|row| State::from_number(row.state) == Some(State::Active))
            .ok_or(Error::Missing("active sealing key for this tenant"))?;
        Ok(SealingKeys {
            active: active.version,
            versions: self.unwrap_all(tenant, keks, rows)?,
        })
    }

    /// Unwraps every usable version of a key, the active one first.
    fn unwrap_all<P: Purpose>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<Vec<(u32, Key<P>)>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let unwrap = |row: &KeyRow| {
            let context = self.context(tenant, row.version);
            let key = keks
                .iter()
                .find_map(|kek| cloakroom_crypto::unwrap(kek, &context, &row.wrapped).ok())
                .ok_or_else(|| Error::WrongKey(format!("a tenant's {} key", P::PURPOSE.name())))?;
            Ok((row.version, key))
        };
        usable::<P>(rows).map(unwrap).collect()
    }

    /// Unwraps the active version of a key.
    fn active<P: Purpose>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<Key<P>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let versions = self.unwrap_all::<P>(tenant, keks, rows)?;
        let active = versions.into_iter().next();
        active.map(|(_, key)| key).ok_or(Error::Missing(
            "active key of every purpose for this tenant",
        ))
    }

    fn context(&self, tenant: TenantId, version: u32) -> WrapContext<'_> {
        WrapContext {
            environment: &self.environment,
            tenant: Some(tenant.uuid.into_bytes()),
            version,
        }
    }
}

async fn load_system_keys<P: Authenticates>(
    db: &Db,
    root: &RootKey,
    environment: &str,
) -> Result<MacKeys<P>, Error>
where
    RootKek: Wraps<P>,
{
    let rows = store::list_system_keys(db).await?;
    let mut versions: Vec<Key<P>> = Vec::new();
    for row in usable::<P>(&rows) {
        let context = WrapContext {
            environment,
            tenant: None,
            version: row.version,
        };
        versions.push(root.unwrap(&row.wrapped, &context).await?);
    }
    if versions.is_empty() {
        let is_in_use = store::any_tenant_keys(db).await?;
        return Err(if is_in_use {
            Error::SystemKeysLost
        } else {
            Error::NotInitialized
        });
    }
    Ok(MacKeys::new(versions))
}

/// Rows of one purpose in a usable state; the store lists active ones first.
pub(super) fn usable<P: Purpose>(rows: &[KeyRow]) -> impl Iterator<Item = &KeyRow> {
    rows.iter()
        .filter(|row| row.purpose == P::PURPOSE.number() && State::from_number(row.state).is_some())
}

/// Shortens the TTL by up to a tenth at random, so that nodes and tenants do not refresh at the same time.
struct Jittered(Duration);

impl Expiry<i32, Arc<TenantKeys>> for Jittered {
    fn expire_after_create(&self, _: &i32, _: &Arc<TenantKeys>, _: Instant) -> Option<Duration> {
        let [random] = random_bytes::<1>();
        Some(self.0 - self.0.mul_f64(f64::from(random) / 2550.0))
    }
}

/// Rejects a database that belongs to another environment.
async fn check_environment(db: &Db, configured: &str) -> Result<(), Error> {
    let found = store::find_environment(db)
        .await?
        .ok_or(Error::NotInitialized)?;
    if found != configured {
        return Err(Error::WrongEnvironment {
            found,
            configured: configured.to_owned(),
        });
    }
    Ok(())
}
