//! How fast clients ask, and how each request went: for loads that are to be steady.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One request: when it was sent, how long it took, and what it was answered with; 0 is no answer.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) took: Duration,
    pub(crate) status: u16,
}

impl Sample {
    /// Whether it was served. 409 is: another attempt at the same request is still at it, or was when its node died,
    /// for as long as the lease of idempotency keys lasts.
    pub(crate) fn is_served(&self) -> bool {
        self.status == 409 || (200..429).contains(&self.status)
    }
}

/// Lets requests go at a steady rate, and remembers them.
pub(crate) struct Pace {
    /// Nothing: as fast as they can.
    between: Option<Duration>,
    next: Mutex<Instant>,
    samples: Mutex<Vec<Sample>>,
}

impl Pace {
    pub(crate) fn new(per_second: Option<f64>) -> Self {
        Self {
            between: per_second.map(|rate| Duration::from_secs_f64(1.0 / rate.max(1.0))),
            next: Mutex::new(Instant::now()),
            samples: Mutex::default(),
        }
    }

    /// Waits for one's turn. What was missed is not made up for: a fault is not followed by a flood.
    pub(crate) async fn wait(&self) {
        let Some(between) = self.between else {
            return;
        };
        let turn = {
            let mut next = lock(&self.next);
            let turn = (*next).max(Instant::now());
            *next = turn + between;
            turn
        };
        tokio::time::sleep_until(turn.into()).await;
    }

    pub(crate) fn note(&self, at: Instant, status: u16) {
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
