//! Refusals that are certain for a while: until then nobody has to be asked again.

use moka::future::Cache;
use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// Refusing counters remembered at a time.
const REFUSALS_MAX: u64 = 100_000;

/// Counters that admit nobody before an instant, as Redis has told.
pub(super) struct Refusals {
    until: Cache<String, Instant>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            until: Cache::new(REFUSALS_MAX),
        }
    }
}

impl Refusals {
    /// Remembers who refused, counted from before the question was asked: until the instant at which
    /// Redis may think otherwise.
    pub(super) async fn remember(
        &self,
        counters: &[Counter<'_>],
        outcomes: &[Outcome],
        asked_at: Instant,
    ) {
        for (counter, outcome) in counters.iter().zip(outcomes) {
            if outcome.is_refused {
                let until = asked_at + outcome.wait;
                self.until.insert(counter.name.clone(), until).await;
            }
        }
    }

    /// What the counters say, if one of them is known to refuse.
    pub(super) async fn find(
        &self,
        counters: &[Counter<'_>],
        now: Instant,
    ) -> Option<Vec<Outcome>> {
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
