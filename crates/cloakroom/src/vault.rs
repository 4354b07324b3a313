//! What a running vault has; handed to every verb.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use crate::access::Authenticator;
use crate::api::BodyLimits;
use crate::audit::Audit;
use crate::bins::Bins;
use crate::card_networks::{self, CardNetworks};
use crate::config::Config;
use crate::containers::ContainerNumbers;
use crate::keys::{Keyring, RootKey};
use crate::rate_limits::RateLimits;
use crate::security_codes::SecurityCodes;
use crate::storage::{self, Db, Redis};
use crate::token_rows;
use crate::tokens::Turns;
use crate::velocity::Velocity;
use crate::{access, deprecations, keys, rate_limits};

/// A shared handle to a running vault.
#[derive(Clone)]
pub struct Vault(Arc<Parts>);

/// The parts of a vault.
pub struct Parts {
    pub config: Config,
    pub db: Db,
    /// A standby, if there is one to ask for what may be a moment old.
    pub replica: Option<Db>,
    /// What nodes share, if there are several; it may be away at any time.
    pub redis: Option<Arc<Redis>>,
    pub keys: Keyring,
    pub audit: Audit,
    pub authenticator: Authenticator,
    pub rate_limits: RateLimits,
    pub container_numbers: ContainerNumbers,
    pub bins: Bins,
    /// Who is asked to authenticate cardholders.
    pub card_networks: CardNetworks,
    pub security_codes: SecurityCodes,
    /// Reads and writes of single tokens, which requests share.
    pub(crate) token_reads: token_rows::Reads,
    pub(crate) token_writes: token_rows::Writes,
    pub turns: Turns,
    pub velocity: Velocity,
    /// Calls that used something deprecated.
    pub deprecations: deprecations::Counts,
}

impl Deref for Vault {
    type Target = Parts;

    fn deref(&self) -> &Parts {
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
    #[error(transparent)]
    RateLimits(#[from] rate_limits::Error),
    #[error(transparent)]
    CardNetworks(#[from] card_networks::Error),
}

impl Vault {
    /// Opens the vault that the configuration describes, and changes nothing in it.
    ///
    /// Refuses a database that lacks migrations, has no keys yet, belongs to another environment, or
    /// was sealed under another root key.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let (root, db) = reach(&config).await?;
        Self::assemble(config, root, db).await
    }

    /// Opens the vault, giving a new one its keys first.
    pub async fn open_or_initialize(config: Config) -> Result<Self, Error> {
        let (root, db) = reach(&config).await?;
        keys::initialize(&db, &root, config.vault.environment.as_str()).await?;
        Self::assemble(config, root, db).await
    }

    async fn assemble(config: Config, root: RootKey, db: Db) -> Result<Self, Error> {
        let environment = config.vault.environment.as_str();
        let keys = Keyring::load(&db, root, environment, &config.root_key).await?;
        let audit = Audit::start(&config, &db, keys.audit());
        let redis = Redis::open(&config.redis)?.map(Arc::new);
        Ok(Self(Arc::new(Parts {
            token_reads: token_rows::Finding::in_convoy(&db, &config.database),
            token_writes: token_rows::Writes::new(&db, audit.pens(), &config.database),
            audit,
            authenticator: Authenticator::new(&config.access),
            rate_limits: RateLimits::open(&config, redis.as_ref())?,
            container_numbers: ContainerNumbers::default(),
            bins: Bins::default(),
            card_networks: CardNetworks::open(&config)?,
            security_codes: SecurityCodes::default(),
            turns: Turns::default(),
            velocity: Velocity::open(&config, redis.as_ref()),
            redis,
            replica: Db::open_replica(&config.database)?,
            deprecations: deprecations::Counts::default(),
            config,
            db,
            keys,
        })))
    }
}

/// Takes the root key, and a database that has the migrations which this version needs.
async fn reach(config: &Config) -> Result<(RootKey, Db), Error> {
    let root = RootKey::load(&config.root_key)?;
    let db = Db::open(&config.database)?;
    db.lend(storage::check).await?;
    Ok((root, db))
}

impl FromRef<Vault> for BodyLimits {
    fn from_ref(vault: &Vault) -> Self {
        let http = &vault.config.http;
        Self {
            max_bytes: http.max_body_bytes,
            timeout: http.body_timeout,
        }
    }
}
