//! Calls to an external provider: deadline, concurrency, circuit breaker and metrics.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cloakroom_platform::telemetry::catalog;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::Failure;
use crate::breaker::Breaker;

/// Time limit of calls that no request of a client waits for: at startup, and to create keys.
const PATIENT_DEADLINE: Duration = Duration::from_secs(10);
/// Calls in flight. A node that starts under load must not exceed the provider's rate.
const CALLS_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Wrap,
    Unwrap,
    Describe,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Wrap => "wrap",
            Self::Unwrap => "unwrap",
            Self::Describe => "describe",
        }
    }
}

pub(crate) struct Calls {
    provider: &'static str,
    deadline: Duration,
    is_serving: AtomicBool,
    breaker: Breaker,
    in_flight: Semaphore,
}

impl Calls {
    pub(crate) fn new(provider: &'static str, deadline: Duration) -> Self {
        catalog::ROOT_KEY_ERRORS.start_at_zero(provider);
        Self {
            provider,
            deadline,
            is_serving: AtomicBool::new(false),
            breaker: Breaker::default(),
            in_flight: Semaphore::new(CALLS_MAX),
        }
    }

    /// From now on clients wait for unwrapped keys: the configured deadline applies.
    pub(crate) fn start_serving(&self) {
        self.is_serving.store(true, Ordering::Relaxed);
    }

    /// Runs one call. Only [`Failure::Unavailable`] opens the breaker: any other outcome is an answer.
    pub(crate) async fn run<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let started_at = Instant::now();
        if !self.breaker.admits(started_at) {
            return self.finish(Err(Failure::Unavailable("recent requests failed")));
        }
        let result = self.send(self.deadline_of(operation), call).await;
        catalog::ROOT_KEY_REQUEST_DURATION
            .with([self.provider, operation.name()])
            .record(started_at.elapsed().as_secs_f64());
        self.finish(result)
    }

    /// Runs a call that no request needs. Only the breaker learns its outcome: the metrics count what requests meet.
    ///
    /// Returns whether the provider responded.
    pub(crate) async fn probe<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> bool {
        if !self.breaker.admits(Instant::now()) {
            return false;
        }
        // A provider that is too slow for requests is unavailable. A probe wraps and unwraps.
        let result = self.send(2 * self.deadline, call).await;
        !matches!(result, Err(Failure::Unavailable(_)))
    }

    /// Runs a call that the breaker has admitted.
    async fn send<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let call = async {
            let _permit = self.in_flight.acquire().await;
            call.await
        };
        let result = timeout(deadline, call).await;
        let result = result.unwrap_or(Err(Failure::Unavailable("it did not respond in time")));
        match &result {
            Err(Failure::Unavailable(_)) => self.breaker.fail(Instant::now()),
            _ => self.breaker.succeed(),
        }
        result
    }

    /// How long the provider has not answered.
    pub(crate) fn unavailable_for(&self) -> Duration {
        self.breaker.failing_for(Instant::now())
    }

    fn deadline_of(&self, operation: Operation) -> Duration {
        let is_awaited = operation == Operation::Unwrap && self.is_serving.load(Ordering::Relaxed);
        match is_awaited {
            true => self.deadline,
            false => PATIENT_DEADLINE,
        }
    }

    fn finish<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(failure) = &result {
            catalog::ROOT_KEY_ERRORS
                .with([self.provider, failure.kind()])
                .increment(1);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_serving_node_waits_no_longer_than_its_deadline() {
        let calls = Calls::new("test", Duration::from_millis(300));
        let slow = async |duration| {
            tokio::time::sleep(duration).await;
            Ok(())
        };
        let above_deadline = Duration::from_millis(400);

        let at_start = calls.run(Operation::Unwrap, slow(above_deadline)).await;
        calls.start_serving();
        let started_at = Instant::now();
        let late = calls.run(Operation::Unwrap, slow(PATIENT_DEADLINE)).await;
        let waited = started_at.elapsed();
        let wrapped = calls.run(Operation::Wrap, slow(above_deadline)).await;

        assert_eq!((at_start, wrapped), (Ok(()), Ok(())));
        let expected = Failure::Unavailable("it did not respond in time");
        assert_eq!(late, Err(expected));
        assert!(waited < PATIENT_DEADLINE / 2, "{waited:?}");
    }

    #[tokio::test]
    async fn a_provider_that_is_down_is_not_called_again_at_once() {
        let calls = Calls::new("test", Duration::from_millis(300));
        let sent = std::cell::Cell::new(0);
        let run = async |outcome: Result<(), Failure>| {
            let call = async {
                sent.set(sent.get() + 1);
                outcome
            };
            calls.run(Operation::Unwrap, call).await
        };

        for _ in 0..5 {
            assert!(run(Err(Failure::Denied("403"))).await.is_err());
        }
        assert_eq!(sent.get(), 5);
        for _ in 0..5 {
            let outcome = run(Err(Failure::Unavailable("refused"))).await;
            assert!(matches!(outcome, Err(Failure::Unavailable(_))));
        }
        assert_eq!(sent.get(), 8);
    }
}
