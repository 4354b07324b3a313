//! How many requests are let in: limits on their rate, shared by all nodes, and a turnstile in each.

mod admit;
mod asked;
mod counter;
pub mod gate;
mod local_windows;
mod refusals;
mod route;
mod row;
mod store;
mod table;
mod turnstile;
mod verdict;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uuid::Uuid;

pub use self::asked::{Asked, AskedKey, Proxy};
use self::local_windows::LocalWindows;
use self::refusals::Refusals;
pub use self::row::{Action, Counted, Row, written};
pub(crate) use self::store::STATEMENTS;
pub use self::table::{Explained, Table};
pub use self::turnstile::{Busy, Place, Turnstile};
pub use self::verdict::HEADERS;
use crate::config::Config;
use crate::ids;
use crate::storage::{self, Db};
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
    /// Whether this node counts by itself, because Redis does not answer.
    is_alone: AtomicBool,
    node: Uuid,
    /// How many nodes run, as last heard.
    nodes: AtomicU64,
    turnstile: Turnstile,
}

impl RateLimits {
    /// Reads the table that the configuration names.
    pub fn open(config: &Config) -> Result<Self, Error> {
        // A table that cannot be used is told even while it is not in use.
        let table = Table::load(&config.limits)?;
        let database = &config.database;
        let places = config
            .limits
            .running_requests
            .unwrap_or(database.max_connections);
        Ok(Self {
            table: config.limits.enabled.then_some(table),
            refusals: Refusals::default(),
            windows: LocalWindows::default(),
            is_alone: AtomicBool::new(false),
            node: ids::new_uuid(),
            nodes: AtomicU64::new(1),
            turnstile: Turnstile::new(places, database.acquire_timeout),
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
