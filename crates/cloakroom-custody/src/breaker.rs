//! A circuit breaker: while a provider is down, requests fail at once instead of waiting for its deadline.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive failures that open the breaker.
const FAILURES_MAX: u32 = 3;
/// How long an open breaker rejects. Afterwards one request per period is a trial, until one succeeds.
pub(crate) const OPEN_PERIOD: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    /// The first of the failures.
    failing_since: Option<Instant>,
    /// Requests before this moment are rejected.
    open_until: Option<Instant>,
}

impl Breaker {
    /// Whether a request may be sent now.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        let mut state = self.lock();
        match state.open_until {
            Some(until) if now < until => false,
            Some(_) => {
                // A trial. The others wait for its result, or for the next one if it is cancelled.
                state.open_until = Some(now + OPEN_PERIOD);
                true
            }
            None => true,
        }
    }

    /// Records a request that was answered.
    pub(crate) fn succeed(&self) {
        *self.lock() = State::default();
    }

    /// Records a request without an answer.
    pub(crate) fn fail(&self, now: Instant) {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        state.failing_since.get_or_insert(now);
        if state.failures >= FAILURES_MAX {
            state.open_until = Some(now + OPEN_PERIOD);
        }
    }

    /// Time since the first request without an answer, if none was answered since.
    pub(crate) fn failing_for(&self, now: Instant) -> Duration {
        let since = self.lock().failing_since;
        since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breaker_opens_after_three_failures_and_admits_one_trial_per_period() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        for _ in 0..3 {
            assert!(breaker.admits(start));
            breaker.fail(start);
        }

        assert!(!breaker.admits(start + OPEN_PERIOD / 2));
        let trial = start + OPEN_PERIOD;
        assert!(breaker.admits(trial));
        assert!(!breaker.admits(trial));
        breaker.fail(trial);
        assert!(!breaker.admits(trial + OPEN_PERIOD / 2));
        let second = trial + OPEN_PERIOD;
        assert!(breaker.admits(second));
        breaker.succeed();
        assert!(breaker.admits(second) && breaker.admits(second));
    }

    #[test]
    fn an_answer_between_failures_keeps_the_breaker_closed() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            breaker.fail(now);
            breaker.fail(now);
            breaker.succeed();
        }
        assert!(breaker.admits(now));
    }
}
