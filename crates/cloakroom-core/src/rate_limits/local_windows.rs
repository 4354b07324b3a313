//! Exact sliding windows in the memory of one node.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// Counters stored at a time.
const COUNTERS_MAX: usize = 100_000;

/// The counters of a node without Redis, or while Redis is unavailable.
#[derive(Default)]
pub(super) struct LocalWindows {
    windows: Mutex<HashMap<String, Window>>,
}

#[derive(Default)]
struct Window {
    length: Duration,
    /// Times of admission, oldest first.
    log: VecDeque<Instant>,
    blocked_until: Option<Instant>,
}

impl LocalWindows {
    /// Admits a request to all of its counters, or to none. Each of `nodes` has its share of a
    /// limit, at least one request.
    pub(super) fn admit(&self, counters: &[Counter], nodes: u64, now: Instant) -> Vec<Outcome> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        evict(&mut windows, now);
        let mut outcomes = Vec::with_capacity(counters.len());
        for counter in counters {
            let window = windows.entry(counter.name.clone()).or_default();
            window.length = counter.row.window;
            let limit = (counter.limit / nodes.max(1)).max(1);
            outcomes.push(window.check(limit, counter.block(), now));
        }
        if outcomes.iter().any(|outcome| outcome.is_rejected) {
            return outcomes;
        }
        for (counter, outcome) in counters.iter().zip(&mut outcomes) {
            if let Some(window) = windows.get_mut(&counter.name) {
                window.log.push_back(now);
                outcome.remaining = outcome.remaining.saturating_sub(1);
            }
        }
        outcomes
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.windows.lock().unwrap().len()
    }
}

impl Window {
    fn check(&mut self, limit: u64, block: Duration, now: Instant) -> Outcome {
        self.remove_expired(now);
        let count = self.log.len() as u64;
        let index = usize::try_from(count.saturating_sub(limit)).unwrap_or(0);
        let capacity_at = self.log.get(index).map(|at| *at + self.length);
        let is_rejected = self.blocked_until.is_some() || count >= limit;
        if is_rejected && !block.is_zero() && self.blocked_until.is_none() {
            self.blocked_until = capacity_at.max(Some(now + block));
        }
        let until = self.blocked_until.or(capacity_at);
        Outcome {
            is_rejected,
            remaining: if is_rejected { 0 } else { limit - count },
            wait: until.map_or(self.length, |until| until.duration_since(now)),
        }
    }

    fn remove_expired(&mut self, now: Instant) {
        self.blocked_until = self.blocked_until.filter(|until| now < *until);
        while self.log.front().is_some_and(|at| *at + self.length <= now) {
            self.log.pop_front();
        }
    }

    fn is_empty(&self) -> bool {
        self.log.is_empty() && self.blocked_until.is_none()
    }
}

/// Evicts idle counters if there are too many, and then arbitrary ones.
fn evict(windows: &mut HashMap<String, Window>, now: Instant) {
    if windows.len() < COUNTERS_MAX {
        return;
    }
    windows.retain(|_, window| {
        window.remove_expired(now);
        !window.is_empty()
    });
    let too_many = windows.len().saturating_sub(COUNTERS_MAX / 2);
    let names: Vec<String> = windows.keys().take(too_many).cloned().collect();
    for name in names {
        windows.remove(&name);
    }
}
