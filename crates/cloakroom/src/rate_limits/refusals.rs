//! Refusals that are certain for a while: until then nobody has to be asked again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;
use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// Refusing counters remembered at a time.
const REFUSALS_MAX: u64 = 100_000;

/// Counters that admit nobody before an instant, as Redis has told.
pub(super) struct Refusals {
    until: Cache<String, Instant>,
    begun: Instant,
    /// Microseconds from the beginning until the last of them is over: most of the time there are none.
    last_over: AtomicU64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            until: Cache::new(REFUSALS_MAX),
            begun: Instant::now(),
            last_over: AtomicU64::new(0),
        }
    }
}

impl Refusals {
    /// Remembers who refused, counted from before the question was asked: until the instant at which
    /// Redis may think otherwise.
    pub(super) async fn remember(
        &self,
        counters: &[Counter],
        outcomes: &[Outcome],
        asked_at: Instant,
    ) {
        for (counter, outcome) in counters.iter().zip(outcomes) {
            if outcome.is_refused {
                let until = asked_at + outcome.wait;
                self.until.insert(counter.name.clone(), until).await;
                let over = until.duration_since(self.begun).as_micros();
                let over = u64::try_from(over).unwrap_or(u64::MAX);
                self.last_over.fetch_max(over, Ordering::Relaxed);
            }
        }
    }

    /// Whether anything can be found, which costs less to know than to look.
    pub(super) fn are_there(&self, now: Instant) -> bool {
        let last_over = Duration::from_micros(self.last_over.load(Ordering::Relaxed));
        now.duration_since(self.begun) < last_over
    }

    /// What the counters say, if one of them is known to refuse.
    pub(super) async fn find(&self, counters: &[Counter], now: Instant) -> Option<Vec<Outcome>> {
        if !self.are_there(now) {
            return None;
        }
        let mut outcomes = Vec::with_capacity(counters.len());
        for counter in counters {
            let until = self.until.get(&counter.name).await;
            let wait = until.map_or_else(Default::default, |until| until.duration_since(now));
            outcomes.push(Outcome {
                is_refused: !wait.is_zero(),
                left: 0,
                wait,
            });
        }
        let is_refused = outcomes.iter().any(|outcome| outcome.is_refused);
        is_refused.then_some(outcomes)
    }
}
