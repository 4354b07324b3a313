//! State shared by the DS and the ACS: ranges, transactions, injected faults and timers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use crate::fault_injection::InjectedFaults;
use crate::networks::NETWORKS;
use crate::ranges::Ranges;
use crate::sender::ResultSender;
use crate::transaction::Transaction;
use crate::wire::Fields;

/// More than a test suite needs; limits the memory of long-running simulators.
const MAX_ENTRIES: usize = 5_000;

pub(crate) struct SharedState {
    pub(crate) acs_url: String,
    pub(crate) creq_timeout: Duration,
    pub(crate) decoupled_delay: Duration,
    pub(crate) sender: ResultSender,
    ranges: Mutex<HashMap<&'static str, Ranges>>,
    store: Mutex<TransactionStore>,
    injected_faults: Mutex<InjectedFaults>,
    counts: Mutex<Counts>,
    timers: Mutex<JoinSet<()>>,
}

/// Message counts by type.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Counts {
    received: BTreeMap<&'static str, u64>,
    sent: BTreeMap<&'static str, u64>,
}

/// Types that are counted by name; others count as `unknown`.
const KINDS: [&str; 12] = [
    "PReq", "PRes", "AReq", "ARes", "CReq", "CRes", "RReq", "RRes", "Erro", "preauth", "auth",
    "postauth",
];

fn count(counts: &mut BTreeMap<&'static str, u64>, kind: &str) {
    let known = KINDS.iter().find(|known| **known == kind);
    *counts
        .entry(known.copied().unwrap_or("unknown"))
        .or_default() += 1;
}

/// Transactions by their ids. Evicts the oldest entries.
#[derive(Default)]
pub(crate) struct TransactionStore {
    pub(crate) requests: BoundedMap<ReceivedAreq>,
    pub(crate) transactions: BoundedMap<Arc<Transaction>>,
    pub(crate) completed_methods: BoundedMap<()>,
    /// Ids assigned by the vendor interface, with time and network.
    pub(crate) vendor_ids: BoundedMap<(Instant, &'static str)>,
}

/// The last AReq of a transaction, with a truncated card number, and its response.
#[derive(Clone)]
pub(crate) struct ReceivedAreq {
    pub(crate) network: &'static str,
    pub(crate) areq: Fields,
    pub(crate) ares: Option<Fields>,
    pub(crate) transaction: Option<Arc<Transaction>>,
}

/// A map of limited size that evicts the oldest entry.
pub(crate) struct BoundedMap<V> {
    by_id: HashMap<String, V>,
    order: VecDeque<String>,
}

impl<V> Default for BoundedMap<V> {
    fn default() -> Self {
        Self {
            by_id: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<V> BoundedMap<V> {
    pub(crate) fn put(&mut self, id: &str, value: V) {
        if self.by_id.insert(id.to_owned(), value).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_ENTRIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&V> {
        self.by_id.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        self.by_id.get_mut(id)
    }
}

impl SharedState {
    pub(crate) fn new(
        acs_url: String,
        creq_timeout: Duration,
        decoupled_delay: Duration,
        sender: ResultSender,
    ) -> Self {
        let ranges = NETWORKS.iter().map(|name| (*name, Ranges::of(name)));
        Self {
            acs_url,
            creq_timeout,
            decoupled_delay,
            sender,
            ranges: Mutex::new(ranges.collect()),
            store: Mutex::default(),
            injected_faults: Mutex::default(),
            counts: Mutex::default(),
            timers: Mutex::new(JoinSet::new()),
        }
    }

    pub(crate) fn ranges(&self) -> MutexGuard<'_, HashMap<&'static str, Ranges>> {
        lock(&self.ranges)
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, TransactionStore> {
        lock(&self.store)
    }

    pub(crate) fn injected_faults(&self) -> MutexGuard<'_, InjectedFaults> {
        lock(&self.injected_faults)
    }

    pub(crate) fn transaction(&self, acs_id: &str) -> Option<Arc<Transaction>> {
        self.store().transactions.get(acs_id).cloned()
    }

    pub(crate) fn count_received(&self, kind: &str) {
        count(&mut lock(&self.counts).received, kind);
    }

    pub(crate) fn count_sent(&self, kind: &str) {
        count(&mut lock(&self.counts).sent, kind);
    }

    pub(crate) fn counts(&self) -> Counts {
        lock(&self.counts).clone()
    }

    /// Runs a background task until it completes or the simulator stops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut timers = lock(&self.timers);
        while timers.try_join_next().is_some() {}
        timers.spawn(work);
    }

    pub(crate) fn stop(&self) {
        lock(&self.timers).abort_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_bounded_and_evicts_the_oldest_entry() {
        let mut map = BoundedMap::default();
        for number in 0..=MAX_ENTRIES {
            map.put(&number.to_string(), number);
        }
        assert!(map.get("0").is_none());
        assert!(map.get("1").is_some());
        assert_eq!(map.by_id.len(), MAX_ENTRIES);
        assert_eq!(map.order.len(), MAX_ENTRIES);
    }
}
