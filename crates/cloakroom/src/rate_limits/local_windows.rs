//! Windows in the memory of one node, exact like the shared ones.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// Counters remembered at a time.
const COUNTERS_MAX: usize = 100_000;

/// The counters of a node that has no Redis, or none that answers.
#[derive(Default)]
pub(super) struct LocalWindows {
    windows: Mutex<HashMap<String, Window>>,
}

#[derive(Default)]
struct Window {
    length: Duration,
    /// When requests were admitted, the oldest first.
    log: VecDeque<Instant>,
    blocked_until: Option<Instant>,
}

impl LocalWindows {
    /// Admits a request to all of its counters, or to none. Each of `nodes` has its share of a limit,
    /// and one request at least.
    pub(super) fn admit(&self, counters: &[Counter], nodes: u64, now: Instant) -> Vec<Outcome> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut windows, now);
        let mut outcomes = Vec::with_capacity(counters.len());
        for counter in counters {
            let window = windows.entry(counter.name.clone()).or_default();
            window.length = counter.row.window;
            let limit = (counter.limit / nodes.max(1)).max(1);
            outcomes.push(window.look(limit, counter.block(), now));
        }
        if outcomes.iter().any(|outcome| outcome.is_refused) {
            return outcomes;
        }
        for (counter, outcome) in counters.iter().zip(&mut outcomes) {
            if let Some(window) = windows.get_mut(&counter.name) {
                window.log.push_back(now);
                outcome.left = outcome.left.saturating_sub(1);
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
    fn look(&mut self, limit: u64, block: Duration, now: Instant) -> Outcome {
        self.forget_old(now);
        let count = self.log.len() as u64;
        let place = usize::try_from(count.saturating_sub(limit)).unwrap_or(0);
        let room_at = self.log.get(place).map(|at| *at + self.length);
        let is_refused = self.blocked_until.is_some() || count >= limit;
        if is_refused && !block.is_zero() && self.blocked_until.is_none() {
            self.blocked_until = room_at.max(Some(now + block));
        }
        let until = self.blocked_until.or(room_at);
        Outcome {
            is_refused,
            left: if is_refused { 0 } else { limit - count },
            wait: until.map_or(self.length, |until| until.duration_since(now)),
        }
    }

    fn forget_old(&mut self, now: Instant) {
        self.blocked_until = self.blocked_until.filter(|until| now < *until);
        while self.log.front().is_some_and(|at| *at + self.length <= now) {
            self.log.pop_front();
        }
    }

    fn is_empty(&self) -> bool {
        self.log.is_empty() && self.blocked_until.is_none()
    }
}

/// When there are too many, those without a request in their window go, and then any.
fn make_room(windows: &mut HashMap<String, Window>, now: Instant) {
    if windows.len() < COUNTERS_MAX {
        return;
    }
    windows.retain(|_, window| {
        window.forget_old(now);
        !window.is_empty()
    });
    let too_many = windows.len().saturating_sub(COUNTERS_MAX / 2);
    let names: Vec<String> = windows.keys().take(too_many).cloned().collect();
    for name in names {
        windows.remove(&name);
    }
}
