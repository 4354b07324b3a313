//! Cache of rejections: until they expire, no call to Redis is needed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;
use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// Rejecting counters cached at a time.
const REJECTIONS_MAX: u64 = 100_000;

/// Counters that admit no request before an instant.
pub(super) struct Rejections {
    until: Cache<String, Instant>,
    created_at: Instant,
    /// Microseconds from `created_at` until the last rejection expires: most of the time there are
    /// none.
    last_expiry: AtomicU64,
}

impl Default for Rejections {
    fn default() -> Self {
        Self {
            until: Cache::new(REJECTIONS_MAX),
            created_at: Instant::now(),
            last_expiry: AtomicU64::new(0),
        }
    }
}

impl Rejections {
    /// Caches the counters that rejected a request. The wait is measured from before the call, so
    /// no entry outlives the rejection in Redis.
    pub(super) async fn insert(
        &self,
        counters: &[Counter],
        outcomes: &[Outcome],
        started_at: Instant,
    ) {
        for (counter, outcome) in counters.iter().zip(outcomes) {
            if outcome.is_rejected {
                let until = started_at + outcome.wait;
                self.until.insert(counter.name.clone(), until).await;
                let expiry = until.duration_since(self.created_at).as_micros();
                let expiry = u64::try_from(expiry).unwrap_or(u64::MAX);
                self.last_expiry.fetch_max(expiry, Ordering::Relaxed);
            }
        }
    }

    /// Whether any rejection may be active; cheaper than a lookup.
    pub(super) fn is_any_active(&self, now: Instant) -> bool {
        let last_expiry = Duration::from_micros(self.last_expiry.load(Ordering::Relaxed));
        now.duration_since(self.created_at) < last_expiry
    }

    /// The outcomes of the counters, if one of them is known to reject.
    pub(super) async fn find(&self, counters: &[Counter], now: Instant) -> Option<Vec<Outcome>> {
        if !self.is_any_active(now) {
            return None;
        }
        let mut outcomes = Vec::with_capacity(counters.len());
        for counter in counters {
            let until = self.until.get(&counter.name).await;
            let wait = until.map_or_else(Default::default, |until| until.duration_since(now));
            outcomes.push(Outcome {
                is_rejected: !wait.is_zero(),
                remaining: 0,
                wait,
            });
        }
        let is_rejected = outcomes.iter().any(|outcome| outcome.is_rejected);
        is_rejected.then_some(outcomes)
    }
}
