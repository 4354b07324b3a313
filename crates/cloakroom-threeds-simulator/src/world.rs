//! What the two servers share: ranges, remembered transactions, planned trouble, running timers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use crate::networks::NETWORKS;
use crate::ranges::Ranges;
use crate::results::Messenger;
use crate::transaction::Transaction;
use crate::trouble::Troubles;
use crate::wire::Fields;

/// A test suite starts fewer authentications; a laptop left alone must not run out of memory.
const REMEMBERED_MAX: usize = 5_000;

pub(crate) struct World {
    pub(crate) acs_url: String,
    pub(crate) creq_timeout: Duration,
    pub(crate) decoupled_delay: Duration,
    pub(crate) messenger: Messenger,
    ranges: Mutex<HashMap<&'static str, Ranges>>,
    memory: Mutex<Memory>,
    troubles: Mutex<Troubles>,
    counts: Mutex<Counts>,
    timers: Mutex<JoinSet<()>>,
}

/// How many messages there were, by kind.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Counts {
    received: BTreeMap<&'static str, u64>,
    sent: BTreeMap<&'static str, u64>,
}

/// The kinds that are counted by name; all else is `unknown`.
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

/// What is known by the ids of transactions; the oldest is forgotten first.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) requests: Remembered<Seen>,
    pub(crate) transactions: Remembered<Arc<Transaction>>,
    pub(crate) methods: Remembered<()>,
    /// Ids that the vendor assigned, when, and for which network.
    pub(crate) assigned: Remembered<(Instant, &'static str)>,
}

/// The last AReq of a transaction, its card number shortened, and how it was answered.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) network: &'static str,
    pub(crate) request: Fields,
    pub(crate) answer: Option<Fields>,
    pub(crate) transaction: Option<Arc<Transaction>>,
}

pub(crate) struct Remembered<V> {
    by_id: HashMap<String, V>,
    order: VecDeque<String>,
}

impl<V> Default for Remembered<V> {
    fn default() -> Self {
        Self {
            by_id: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<V> Remembered<V> {
    pub(crate) fn put(&mut self, id: &str, value: V) {
        if self.by_id.insert(id.to_owned(), value).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED_MAX
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

impl World {
    pub(crate) fn new(
        acs_url: String,
        creq_timeout: Duration,
        decoupled_delay: Duration,
        messenger: Messenger,
    ) -> Self {
        let ranges = NETWORKS.iter().map(|name| (*name, Ranges::of(name)));
        Self {
            acs_url,
            creq_timeout,
            decoupled_delay,
            messenger,
            ranges: Mutex::new(ranges.collect()),
            memory: Mutex::default(),
            troubles: Mutex::default(),
            counts: Mutex::default(),
            timers: Mutex::new(JoinSet::new()),
        }
    }

    pub(crate) fn ranges(&self) -> MutexGuard<'_, HashMap<&'static str, Ranges>> {
        lock(&self.ranges)
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    pub(crate) fn troubles(&self) -> MutexGuard<'_, Troubles> {
        lock(&self.troubles)
    }

    pub(crate) fn transaction(&self, acs_id: &str) -> Option<Arc<Transaction>> {
        self.memory().transactions.get(acs_id).cloned()
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

    /// Does something later; it ends with the simulator at the latest.
    pub(crate) fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
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
    fn memory_is_bounded_and_forgets_the_oldest() {
        let mut remembered = Remembered::default();
        for number in 0..=REMEMBERED_MAX {
            remembered.put(&number.to_string(), number);
        }
        assert!(remembered.get("0").is_none());
        assert!(remembered.get("1").is_some());
        assert_eq!(remembered.by_id.len(), REMEMBERED_MAX);
        assert_eq!(remembered.order.len(), REMEMBERED_MAX);
    }
}
