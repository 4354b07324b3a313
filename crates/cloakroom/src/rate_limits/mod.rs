//! How many requests are let in: limits on their rate, shared by all nodes, and a turnstile in each.

mod admit;
mod asked;
mod counter;
pub mod gate;
mod local_windows;
mod refusals;
mod reserves;
mod route;
mod row;
mod store;
mod table;
mod verdict;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uuid::Uuid;

pub use self::asked::{Asked, AskedKey, Proxy};
use self::local_windows::LocalWindows;
use self::refusals::Refusals;
use self::reserves::Reserves;
pub use self::row::{Action, Counted, Row, written};
use self::store::Counting;
pub(crate) use self::store::STATEMENTS;
pub use self::table::{Explained, Table};
pub use self::verdict::HEADERS;
use crate::config::Config;
use crate::convoy::Convoy;
use crate::ids;
use crate::storage::{self, Db, Redis};
use crate::turnstile::Turnstile;
use crate::vault::Vault;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: {reason}")]
    Table { place: String, reason: String },
}

/// The limits of a node, and what it knows of its counters.
pub struct RateLimits {
    /// Nothing when rates are not limited.
    table: Option<Table>,
    refusals: Refusals,
    windows: LocalWindows,
    /// Counts through Redis, if there is one.
    counting: Option<Convoy<Counting>>,
    /// What Redis has counted before it came.
    reserves: Arc<Reserves>,
    /// Whether this node counts by itself, because Redis does not answer.
    is_alone: AtomicBool,
    node: Uuid,
    /// How many nodes run, as last heard.
    nodes: Arc<AtomicU64>,
    /// In front of what has a connection to itself.
    turnstile: Turnstile,
    /// In front of what shares statements, and with them connections.
    wide_turnstile: Turnstile,
}

impl RateLimits {
    /// Reads the table that the configuration names.
    pub(crate) fn open(config: &Config, redis: Option<&Arc<Redis>>) -> Result<Self, Error> {
        // A table that cannot be used is told even while it is not in use.
        let table = Table::load(&config.limits)?;
        let patience = config.database.acquire_timeout;
        let running = config.limits.running_requests;
        let running = running.unwrap_or(config.database.max_connections);
        let (reserves, nodes) = (Arc::<Reserves>::default(), Arc::new(AtomicU64::new(1)));
        let counting = redis.map(|redis| Counting::in_convoy(redis, &reserves, &nodes, patience));
        Ok(Self {
            table: config.limits.enabled.then_some(table),
            refusals: Refusals::default(),
            windows: LocalWindows::default(),
            counting,
            reserves,
            is_alone: AtomicBool::new(false),
            node: ids::new_uuid(),
            nodes,
            turnstile: Turnstile::new(running, patience),
            wide_turnstile: Turnstile::new(config.limits.sharing_requests, patience),
        })
    }

    fn note_shared(&self) {
        if self.is_alone.load(Ordering::Relaxed) && self.is_alone.swap(false, Ordering::Relaxed) {
            metrics::gauge!("rate_limits_alone").set(0.0);
            tracing::info!("limits are shared between nodes again");
        }
    }

    fn note_alone(&self) {
        if !self.is_alone.swap(true, Ordering::Relaxed) {
            metrics::gauge!("rate_limits_alone").set(1.0);
            metrics::counter!("rate_limits_fallbacks_total").increment(1);
            tracing::warn!("this node counts requests by itself, to its share of each limit");
        }
    }
}

/// Tells that this node runs, and learns how many do.
pub async fn tell_node(vault: &Vault) -> Result<(), storage::Error> {
    let others = store::tell_node(&vault.db, vault.rate_limits.node).await?;
    vault.rate_limits.nodes.store(others + 1, Ordering::Relaxed);
    metrics::gauge!("nodes_running").set((others + 1) as f64);
    Ok(())
}

/// How many nodes run.
pub async fn count_nodes(db: &Db) -> Result<u64, storage::Error> {
    store::count_nodes(db).await
}

#[cfg(test)]
mod tests;
