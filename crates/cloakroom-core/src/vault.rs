//! The context of every operation: configuration, database, keys, audit log and clock.

use std::ops::Deref;
use std::sync::Arc;

use cloakroom_platform::api::HasHttpConfig;
use cloakroom_platform::config::{self, Config};
use cloakroom_platform::storage::{self, DatabaseClock, Db, Redis};

use crate::access::{AccessStates, PrincipalCache};
use crate::audit::Audit;
use crate::keys::{Keyring, RootKey, RootKeys};
use crate::{access, keys};

/// A shared handle to a running vault.
#[derive(Clone)]
pub struct Vault(Arc<Components>);

pub struct Components {
    pub config: Config,
    pub db: Db,
    /// A standby for reads that may be slightly stale, if configured.
    pub replica: Option<Db>,
    /// State shared by nodes, if configured; it may be unavailable at any time.
    pub redis: Option<Arc<Redis>>,
    pub keys: Keyring,
    pub audit: Audit,
    /// The database's clock, by which all nodes decide.
    pub clock: Arc<DatabaseClock>,
    /// Authenticated principals, by API key.
    pub principals: PrincipalCache,
    /// The generations of access states that this node has seen.
    pub access_states: Arc<AccessStates>,
}

impl Deref for Vault {
    type Target = Components;

    fn deref(&self) -> &Components {
        &self.0
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Access(#[from] access::Error),
}

impl Vault {
    /// Opens the configured vault without changing anything in it.
    ///
    /// Fails if the database lacks migrations, has no keys yet, belongs to another environment, or
    /// was encrypted under another root key.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let root = load_root_keys(&config)?;
        Self::open_with(config, root).await
    }

    /// Opens the vault with root keys that are loaded already.
    pub async fn open_with(config: Config, roots: RootKeys) -> Result<Self, Error> {
        let db = open_database(&config).await?;
        Self::assemble(config, roots, db).await
    }

    /// Opens the vault; creates the keys of a new one first.
    pub async fn open_or_initialize(config: Config) -> Result<Self, Error> {
        let root = load_root_keys(&config)?;
        Self::initialize_with(config, root).await
    }

    /// Like [`Vault::open_or_initialize`], with root keys that are loaded already.
    pub async fn initialize_with(config: Config, roots: RootKeys) -> Result<Self, Error> {
        let db = open_database(&config).await?;
        let environment = config.vault.environment.as_str();
        keys::initialize(&db, &roots, environment, &AccessStates::default()).await?;
        Self::assemble(config, roots, db).await
    }

    async fn assemble(config: Config, roots: RootKeys, db: Db) -> Result<Self, Error> {
        let environment = config.vault.environment.as_str();
        let access_states = Arc::new(AccessStates::default());
        let authority = access_states.clone();
        let keys = Keyring::load(&db, roots, environment, &config.root_key, authority).await?;
        let clock = Arc::new(DatabaseClock::new(db.clone()));
        let audit = Audit::start(&config, &db, &clock, &keys);
        let redis = Redis::open(&config.redis)?.map(Arc::new);
        Ok(Self(Arc::new(Components {
            audit,
            clock,
            principals: PrincipalCache::new(&config.access),
            access_states,
            redis,
            replica: Db::open_replica(&config.database)?,
            config,
            db,
            keys,
        })))
    }
}

fn load_root_keys(config: &Config) -> Result<RootKeys, keys::Error> {
    let roots = RootKeys::new(RootKey::load(&config.root_key)?);
    Ok(roots.with_configured_previous(&config.root_key)?)
}

/// Opens a database that has the migrations of this version.
async fn open_database(config: &Config) -> Result<Db, Error> {
    let db = Db::open(&config.database)?;
    db.with_connection(storage::check).await?;
    Ok(db)
}

impl HasHttpConfig for Vault {
    fn http_config(&self) -> &config::Http {
        &self.config.http
    }
}
