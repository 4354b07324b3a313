//! Card testing protection: counts cards that issuers rejected, per public key and client address.
//!
//! Card testers try numbers until an issuer accepts one. A public key with too many rejected cards
//! from one address within `WINDOW` is blocked there until the oldest of them is out of the window.
//! Nodes share counters in Redis; each node also counts in memory, which decides when Redis is
//! unavailable or not configured.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cloakroom_core::access::{ApplicationKind, PrincipalKind};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_core::{audit, keys};
use cloakroom_crypto::random_bytes;
use cloakroom_platform::api::{ApiError, network_of};
use cloakroom_platform::clock::Uptime;
use cloakroom_platform::storage::{Redis, RedisUnavailable};
use cloakroom_platform::telemetry::catalog;
use redis::pipe;
use uuid::Uuid;

/// How long a rejection counts.
const WINDOW: Duration = Duration::from_secs(60 * 60);
/// Rejections stored per group; no limit is higher.
const REJECTIONS_MAX: usize = 1_000;
/// Groups that a node counts in memory.
const GROUPS_MAX: usize = 100_000;

/// Milliseconds until a group that has reached its limit may continue, or 0.
const WAIT: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local count = redis.call('ZCARD', KEYS[1])
if count < limit then return 0 end
local first = redis.call('ZRANGE', KEYS[1], count - limit, count - limit, 'WITHSCORES')
return math.max(first[2] + window - now, 1)";

/// Adds a rejection to a group.
const ADD: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 0";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("issuers rejected too many cards of this key and address")]
    Exceeded { retry_after: Duration },
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Exceeded { retry_after } => Self::too_many(
                "threeds_refusal_limit",
                "Issuers rejected too many cards of this public key and client address; retry later.",
                retry_after,
            ),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
        }
    }
}

/// Counters of rejected cards.
pub struct CardTesting {
    vault: Vault,
    rejections: Rejections,
}

impl CardTesting {
    pub fn new(vault: &Vault) -> Self {
        Self {
            vault: vault.clone(),
            rejections: Rejections::default(),
        }
    }
}

/// Rejections that this node has counted, by group.
#[derive(Default)]
struct Rejections(Mutex<HashMap<String, VecDeque<Uptime>>>);

impl Rejections {
    fn wait(&self, group: &str, limit: usize, now: Uptime) -> Option<Duration> {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = groups.get(group)?;
        let start = times.partition_point(|at| *at + WINDOW <= now);
        let first = start.max(times.len().checked_sub(limit)?);
        let active = times.len() - start;
        let until = *times.get(first)? + WINDOW;
        (active >= limit).then(|| now.until(until))
    }

    fn add(&self, group: &str, now: Uptime) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        evict(&mut groups, now);
        let times = groups.entry(group.to_owned()).or_default();
        times.push_back(now);
        if times.len() > REJECTIONS_MAX {
            times.pop_front();
        }
    }
}

/// Evicts groups without a rejection in the window; if that is not enough, any half of them.
fn evict(groups: &mut HashMap<String, VecDeque<Uptime>>, now: Uptime) {
    if groups.len() < GROUPS_MAX {
        return;
    }
    groups.retain(|_, times| times.back().is_some_and(|at| now < *at + WINDOW));
    let excess = groups.len().saturating_sub(GROUPS_MAX / 2);
    let names: Vec<String> = groups.keys().take(excess).cloned().collect();
    for name in names {
        groups.remove(&name);
    }
}

/// The group that rejections of a caller's cards count toward. Servers have none: they relay the
/// cards of all of their customers.
pub async fn group_of(cards: &CardTesting, caller: &Caller) -> Result<Option<String>, Error> {
    if caller.application_kind != ApplicationKind::Public {
        return Ok(None);
    }
    let keys = cards.vault.keys.of(caller.tenant).await?;
    let address = caller.origin.map_or_else(String::new, network_of);
    let client = format!("{} {address}", caller.key);
    // The oldest version: all nodes use it until it is destroyed, so replacing the key does not split the counter.
    let versions = keys.fingerprint_versions();
    let mut digests = versions.map(|key| key.fingerprint("threeds refusals", &client));
    let Some(digest) = digests.next() else {
        return Ok(None);
    };
    let digest = digest.as_bytes().iter().take(16);
    Ok(Some(digest.map(|byte| format!("{byte:02x}")).collect()))
}

/// Blocks a public key with too many rejected cards at its address.
pub async fn admit(cards: &CardTesting, caller: &Caller) -> Result<(), Error> {
    let group = group_of(cards, caller).await?;
    let Some(retry_after) = wait(cards, group.as_deref()).await else {
        return Ok(());
    };
    let entity = match caller.kind {
        PrincipalKind::Application => EntityKind::ApplicationKey,
        PrincipalKind::Session | PrincipalKind::Unauthorized => EntityKind::Session,
    };
    let entry = Entry::new(caller, Operation::Reject, entity, caller.key);
    Err(reject(cards, caller, entry, retry_after).await)
}

/// Blocks the authentication of a session whose public key has reached the limit since it was
/// created.
pub async fn admit_session(
    cards: &CardTesting,
    caller: &Caller,
    session: Uuid,
    group: Option<&str>,
) -> Result<(), Error> {
    let Some(retry_after) = wait(cards, group).await else {
        return Ok(());
    };
    let entity = EntityKind::ThreedsSession;
    let entry = Entry::new(caller, Operation::Reject, entity, session);
    Err(reject(cards, caller, entry, retry_after).await)
}

async fn reject(
    cards: &CardTesting,
    caller: &Caller,
    entry: Entry,
    retry_after: Duration,
) -> Error {
    catalog::THREEDS_DECLINE_LIMIT.increment(1);
    tracing::warn!(
        error.kind = "threeds_refusal_limit",
        tenant.id = %caller.tenant.uuid,
        application.id = %caller.application,
        key.id = %caller.key,
        "issuers rejected too many cards of a public key at one address; it is blocked for a while"
    );
    match cards.vault.audit.enqueue(vec![entry]).await {
        Ok(()) => Error::Exceeded { retry_after },
        Err(error) => error.into(),
    }
}

/// Counts a card that its issuer rejected.
pub async fn count(cards: &CardTesting, group: &str) {
    cards.rejections.add(group, Uptime::now());
    if let Some(redis) = &cards.vault.redis {
        // Counted in memory as well, so an outage of Redis loses nothing on this node.
        let _ignored = add(redis, &name_of(cards, group)).await;
    }
}

async fn wait(cards: &CardTesting, group: Option<&str>) -> Option<Duration> {
    let (group, limit) = (group?, cards.vault.config.threeds.refusal_limit);
    let shared = match &cards.vault.redis {
        Some(redis) => shared_wait(redis, &name_of(cards, group), limit).await.ok(),
        None => None,
    };
    let local = || cards.rejections.wait(group, limit, Uptime::now());
    shared.unwrap_or_else(local)
}

async fn shared_wait(
    redis: &Redis,
    name: &str,
    limit: usize,
) -> Result<Option<Duration>, RedisUnavailable> {
    let mut command = pipe();
    command
        .cmd("EVAL")
        .arg(WAIT)
        .arg(1)
        .arg(name)
        .arg(limit)
        .arg(milliseconds(WINDOW));
    let (left,): (i64,) = redis.query(&command).await?;
    let left = u64::try_from(left).unwrap_or_default();
    Ok((left > 0).then(|| Duration::from_millis(left)))
}

async fn add(redis: &Redis, name: &str) -> Result<(), RedisUnavailable> {
    let mut command = pipe();
    command
        .cmd("EVAL")
        .arg(ADD)
        .arg(1)
        .arg(name)
        .arg(&random_bytes::<8>())
        .arg(REJECTIONS_MAX)
        .arg(milliseconds(WINDOW));
    let (_,): (i64,) = redis.query(&command).await?;
    Ok(())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn name_of(cards: &CardTesting, group: &str) -> String {
    let environment = cards.vault.keys.environment();
    format!("cloakroom:{environment}:threeds:refusals:{group}")
}

#[cfg(test)]
mod tests;
