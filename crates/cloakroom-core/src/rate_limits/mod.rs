//! Rate limits, shared by all nodes, and concurrency limits per node.

mod admit;
mod counter;
mod decision;
mod local_windows;
mod rejections;
mod request_info;
mod reserves;
mod route;
mod row;
mod store;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cloakroom_platform::admission::FairSemaphore;
use cloakroom_platform::batching::Batcher;
use cloakroom_platform::ids;
use cloakroom_platform::storage::{self, Db};
use cloakroom_platform::telemetry::catalog;
use uuid::Uuid;

pub use self::admit::{admit, reject_known};
pub use self::decision::{Decision, HEADERS};
use self::local_windows::LocalWindows;
use self::rejections::Rejections;
pub use self::request_info::{KeyInfo, OpenProxyKey, Proxy, RequestInfo};
use self::reserves::Reserves;
pub use self::row::{Action, CounterKind, Row, written};
use self::store::RedisCounter;
pub(crate) use self::store::STATEMENTS;
pub use self::table::{LimitExplanation, Table};
use crate::vault::Vault;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: {reason}")]
    Table { place: String, reason: String },
}

/// The rate limits of a node and the state of its counters.
pub struct RateLimits {
    pub(crate) vault: Vault,
    /// `None` if rate limits are disabled.
    table: Option<Table>,
    rejections: Rejections,
    windows: LocalWindows,
    /// Counts through Redis, if it is configured.
    redis_counter: Option<Batcher<RedisCounter>>,
    /// Admissions that Redis has counted in advance.
    reserves: Arc<Reserves>,
    /// Whether this node counts locally because Redis is unavailable.
    is_local: AtomicBool,
    node: Uuid,
    /// Number of running nodes, from the last heartbeat.
    nodes: Arc<AtomicU64>,
    /// Admits requests that use a connection of their own.
    pub(crate) admission: FairSemaphore,
    /// Admits requests that are batched into shared statements, and so share connections.
    pub(crate) batched_admission: FairSemaphore,
}

impl RateLimits {
    /// Loads the configured table.
    pub fn open(vault: &Vault) -> Result<Self, Error> {
        let config = &vault.config;
        // Errors in the table are reported even if limits are disabled.
        let table = Table::load(&config.limits)?;
        catalog::RATE_LIMITS_LOCAL.set(0.0);
        for row in &table.rows {
            // So that the first rejection is an increase.
            catalog::RATE_LIMITED.with([row.name.clone()]).increment(0);
        }
        let queue_timeout = config.database.acquire_timeout;
        let running = config.limits.running_requests;
        let running = running.unwrap_or(config.database.max_connections);
        let (reserves, nodes) = (Arc::<Reserves>::default(), Arc::new(AtomicU64::new(1)));
        let redis_counter = vault
            .redis
            .as_ref()
            .map(|redis| RedisCounter::batched(redis, &reserves, &nodes, queue_timeout));
        Ok(Self {
            vault: vault.clone(),
            table: config.limits.enabled.then_some(table),
            rejections: Rejections::default(),
            windows: LocalWindows::default(),
            redis_counter,
            reserves,
            is_local: AtomicBool::new(false),
            node: ids::new_uuid(),
            nodes,
            admission: FairSemaphore::new(running, queue_timeout),
            batched_admission: FairSemaphore::new(config.limits.sharing_requests, queue_timeout),
        })
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.table.is_some()
    }

    fn mark_shared(&self) {
        if self.is_local.load(Ordering::Relaxed) && self.is_local.swap(false, Ordering::Relaxed) {
            catalog::RATE_LIMITS_LOCAL.set(0.0);
            tracing::info!("limits are shared between nodes again");
        }
    }

    fn mark_local(&self) {
        if !self.is_local.swap(true, Ordering::Relaxed) {
            catalog::RATE_LIMITS_LOCAL.set(1.0);
            catalog::RATE_LIMITS_FALLBACKS.increment(1);
            tracing::warn!("this node counts requests by itself, to its share of each limit");
        }
    }
}

/// Writes the heartbeat of this node, updates the number of running nodes, and loads keys that were changed.
pub async fn write_heartbeat(limits: &RateLimits) -> Result<(), storage::Error> {
    let (db, keys) = (&limits.vault.db, &limits.vault.keys);
    let (others, newest) = store::write_heartbeat(db, limits.node, keys.generation()).await?;
    // Without the keys, the generation is not acknowledged, and the next heartbeat tries again.
    if let Ok(true) = keys.learn(newest).await {
        store::write_heartbeat(db, limits.node, keys.generation()).await?;
    }
    limits.nodes.store(others + 1, Ordering::Relaxed);
    catalog::NODES.set((others + 1) as f64);
    Ok(())
}

/// Counts the running nodes.
pub async fn count_nodes(db: &Db) -> Result<u64, storage::Error> {
    store::count_nodes(db).await
}

#[cfg(test)]
mod tests;
