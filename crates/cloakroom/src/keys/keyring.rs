//! The keyring of a running node: the control key, and tenants' keys remembered for a bounded time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_crypto::{
    Control, Data, Key, Purpose, Sensitive, TenantKek, WrapContext, random_bytes,
};
use moka::future::Cache;

use super::store::{self, KeyRow};
use super::{ControlKey, Error, Record, RootKey, State, TenantKeys, create};
use crate::config;
use crate::ids::TenantId;
use crate::storage::Db;

/// Unwraps keys when they are needed and forgets them again.
pub struct Keyring {
    db: Db,
    root: RootKey,
    environment: Arc<str>,
    control: ControlKey,
    tenants: Cache<i32, Remembered>,
    ttl: Duration,
    /// One stale tenant is refreshed at a time; the others wait and find it fresh.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Remembered {
    keys: Arc<TenantKeys>,
    fresh_until: Instant,
}

impl Keyring {
    /// Initializes the vault's keys if it has none, and loads the control key.
    pub async fn load(
        db: &Db,
        root: RootKey,
        environment: &str,
        config: &config::RootKey,
    ) -> Result<Self, Error> {
        create::initialize(db, &root, environment).await?;
        let control = load_control(db, &root, environment).await?;
        let tenants = Cache::builder()
            .max_capacity(config.cache_size as u64)
            .time_to_live(config.grace.max(config.cache_ttl))
            .build();
        Ok(Self {
            db: db.clone(),
            root,
            environment: environment.into(),
            control,
            tenants,
            ttl: config.cache_ttl,
            refreshing: tokio::sync::Mutex::default(),
        })
    }

    pub fn control(&self) -> &ControlKey {
        &self.control
    }

    pub fn root(&self) -> &RootKey {
        &self.root
    }

    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// The keys of a tenant, from memory while they are fresh.
    pub async fn of(&self, tenant: TenantId) -> Result<Arc<TenantKeys>, Error> {
        if let Some(remembered) = self.tenants.get(&tenant.number).await
            && Instant::now() < remembered.fresh_until
        {
            return Ok(remembered.keys);
        }
        self.refresh(tenant, |remembered| Instant::now() < remembered.fresh_until)
            .await
    }

    /// Opens a sealed value of a tenant, looking again for keys when it names an unknown version.
    pub async fn open(
        &self,
        tenant: TenantId,
        record: &Record<'_>,
        sealed: &[u8],
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        let mut keys = self.of(tenant).await?;
        if keys.lacks_key_of(sealed) {
            keys = self
                .refresh(tenant, |remembered| !remembered.keys.lacks_key_of(sealed))
                .await?;
        }
        keys.open(record, sealed)
    }

    /// Loads a tenant's keys unless, after waiting for its turn, what is remembered will do.
    ///
    /// While the provider is away, remembered keys keep working until the cache drops them.
    async fn refresh(
        &self,
        tenant: TenantId,
        will_do: impl Fn(&Remembered) -> bool,
    ) -> Result<Arc<TenantKeys>, Error> {
        let _turn = self.refreshing.lock().await;
        let remembered = self.tenants.get(&tenant.number).await;
        if let Some(remembered) = &remembered
            && will_do(remembered)
        {
            return Ok(remembered.keys.clone());
        }
        let keys = match (self.load_tenant(tenant).await, remembered) {
            (Ok(keys), _) => Arc::new(keys),
            (Err(Error::ProviderUnavailable), Some(remembered)) => {
                tracing::warn!("the key provider is away; remembered keys are used");
                return Ok(remembered.keys);
            }
            (Err(error), _) => return Err(error),
        };
        let fresh_until = Instant::now() + with_jitter(self.ttl);
        self.tenants
            .insert(
                tenant.number,
                Remembered {
                    keys: keys.clone(),
                    fresh_until,
                },
            )
            .await;
        Ok(keys)
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
        let mut data = Vec::new();
        let mut active = None;
        for row in usable::<Data>(&rows) {
            let context = self.context(tenant, row.version);
            let key = keks
                .iter()
                .find_map(|kek| cloakroom_crypto::unwrap(kek, &context, &row.wrapped).ok())
                .ok_or_else(|| Error::WrongKey("a tenant's data key".to_owned()))?;
            if State::from_number(row.state) == Some(State::Active) {
                active = Some(row.version);
            }
            data.push((row.version, key));
        }
        let active = active.ok_or(Error::Missing("active data key for this tenant"))?;
        Ok(TenantKeys {
            environment: self.environment.clone(),
            tenant,
            active,
            data,
        })
    }

    fn context(&self, tenant: TenantId, version: u32) -> WrapContext<'_> {
        WrapContext {
            environment: &self.environment,
            tenant: Some(tenant.uuid.into_bytes()),
            version,
        }
    }
}

async fn load_control(db: &Db, root: &RootKey, environment: &str) -> Result<ControlKey, Error> {
    let rows = store::list_system_keys(db).await?;
    let mut versions: Vec<Key<Control>> = Vec::new();
    for row in usable::<Control>(&rows) {
        let context = WrapContext {
            environment,
            tenant: None,
            version: row.version,
        };
        versions.push(root.unwrap(&row.wrapped, &context).await?);
    }
    if versions.is_empty() {
        return Err(Error::Missing("control key"));
    }
    Ok(ControlKey::new(versions))
}

/// Rows of one purpose in a state that may be used; the store lists active ones first.
fn usable<P: Purpose>(rows: &[KeyRow]) -> impl Iterator<Item = &KeyRow> {
    rows.iter()
        .filter(|row| row.purpose == P::PURPOSE.number() && State::from_number(row.state).is_some())
}

/// Up to a tenth less, so that nodes and tenants do not refresh in step.
fn with_jitter(ttl: Duration) -> Duration {
    let [random] = random_bytes::<1>();
    ttl - ttl.mul_f64(f64::from(random) / 255.0 / 10.0)
}
