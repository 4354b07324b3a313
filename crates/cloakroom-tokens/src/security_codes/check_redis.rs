//! Checks that Redis writes nothing to disk, where wrapped keys would outlive their end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use cloakroom_platform::config::{Config, Environment};
use cloakroom_platform::storage::Persistence;
use cloakroom_platform::telemetry::catalog;

use super::SecurityCodes;

/// Whether keys may be published to Redis, by the last check.
pub(super) struct PublishingPolicy {
    is_allowed: AtomicBool,
    /// The last result. Only a change is logged.
    last: Mutex<Option<Persistence>>,
}

impl PublishingPolicy {
    /// In production, nothing is published before the first check.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            is_allowed: AtomicBool::new(!is_production(config)),
            last: Mutex::default(),
        }
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.is_allowed.load(Ordering::Relaxed)
    }
}

/// Redis writes keys of security codes to disk, or does not permit to check that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisPersists {
    #[error(
        "Redis writes to disk because of `{0}`, where keys of security codes outlive their end; set `save \"\"`, \
         `appendonly no` and `repl-diskless-sync yes`"
    )]
    On(&'static str),
    #[error(
        "Redis refuses CONFIG GET, so its persistence cannot be checked; permit the command, or set \
         redis.allow_unchecked_persistence if it writes nothing to disk"
    )]
    Hidden,
}

/// Checks the settings of Redis. In production, keys are published only after a check that found nothing; without
/// them, a node opens only the codes that it sealed. In other environments a finding is only logged.
///
/// The result of the last check remains in effect while Redis is unavailable.
pub async fn check_redis(codes: &SecurityCodes) -> Result<(), RedisPersists> {
    let config = &codes.vault.config;
    let Some(redis) = &codes.vault.redis else {
        return Ok(());
    };
    let Ok(persistence) = redis.persistence().await else {
        return Ok(());
    };
    let found = match persistence {
        Persistence::Off => Ok(()),
        Persistence::Hidden if config.redis.allow_unchecked_persistence => Ok(()),
        Persistence::Hidden => Err(RedisPersists::Hidden),
        Persistence::On(setting) => Err(RedisPersists::On(setting)),
    };
    let is_allowed = found.is_ok() || !is_production(config);
    let policy = &codes.publishing;
    policy.is_allowed.store(is_allowed, Ordering::Relaxed);
    catalog::REDIS_VOLATILE.set(if found.is_ok() { 1.0 } else { 0.0 });
    let mut last = policy.last.lock().unwrap_or_else(PoisonError::into_inner);
    if last.replace(persistence) != Some(persistence) {
        report(found, is_allowed);
    }
    match is_allowed {
        true => Ok(()),
        false => found,
    }
}

fn report(found: Result<(), RedisPersists>, is_allowed: bool) {
    match (found, is_allowed) {
        (Ok(()), _) => tracing::info!("Redis writes nothing to disk"),
        (Err(_), true) => tracing::warn!(
            error.kind = "redis_persists",
            "Redis may write keys of security codes to disk; a production node would not publish them"
        ),
        (Err(_), false) => tracing::error!(
            error.kind = "redis_persists",
            "Redis may write keys of security codes to disk; no new keys are published until its settings are corrected"
        ),
    }
}

fn is_production(config: &Config) -> bool {
    config.vault.environment == Environment::Production
}
