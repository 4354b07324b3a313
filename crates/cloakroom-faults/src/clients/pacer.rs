//! Rate limit of the workload, and samples of its requests.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A request: start, latency and status; status 0 means no response.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) took: Duration,
    pub(crate) status: u16,
}

impl Sample {
    /// Whether it was served. 409 counts as served: another attempt of the same request is in progress, or its node
    /// died and the lease of the idempotency key has not expired.
    pub(crate) fn is_served(&self) -> bool {
        self.status == 409 || (200..429).contains(&self.status)
    }
}

/// Limits the request rate, and records samples.
pub(crate) struct Pacer {
    /// No limit if absent.
    interval: Option<Duration>,
    next: Mutex<Instant>,
    samples: Mutex<Vec<Sample>>,
}

impl Pacer {
    pub(crate) fn new(per_second: Option<f64>) -> Self {
        Self {
            interval: per_second.map(|rate| Duration::from_secs_f64(1.0 / rate.max(1.0))),
            next: Mutex::new(Instant::now()),
            samples: Mutex::default(),
        }
    }

    /// Waits for the next slot. Missed slots are skipped, so that a fault is not followed by a burst.
    pub(crate) async fn wait(&self) {
        let Some(interval) = self.interval else {
            return;
        };
        let slot = {
            let mut next = lock(&self.next);
            let slot = (*next).max(Instant::now());
            *next = slot + interval;
            slot
        };
        tokio::time::sleep_until(slot.into()).await;
    }

    pub(crate) fn record(&self, at: Instant, status: u16) {
        lock(&self.samples).push(Sample {
            at,
            took: at.elapsed(),
            status,
        });
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        lock(&self.samples).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
