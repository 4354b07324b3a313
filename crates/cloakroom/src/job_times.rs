//! When the background jobs of a node last succeeded.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cloakroom_platform::telemetry::catalog;

/// The time of the last success of each job; at first, the start of the node.
pub struct JobTimes {
    started_at: Instant,
    succeeded_at: Mutex<BTreeMap<&'static str, Instant>>,
    /// Jobs whose latest run failed, and the kinds of their errors.
    failing: Mutex<BTreeMap<&'static str, &'static str>>,
}

impl Default for JobTimes {
    fn default() -> Self {
        let started_at = Instant::now();
        let succeeded_at = catalog::JOBS.iter().map(|job| (*job, started_at)).collect();
        Self {
            started_at,
            succeeded_at: Mutex::new(succeeded_at),
            failing: Mutex::default(),
        }
    }
}

impl JobTimes {
    /// Records a run of a job.
    pub fn record(&self, job: &'static str, is_ok: bool) {
        if !is_ok {
            catalog::JOB_FAILURES.with([job]).increment(1);
            return;
        }
        let mut times = self
            .succeeded_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        times.insert(job, Instant::now());
        drop(times);
        if self.failing().remove(job).is_some() {
            tracing::info!(job, "the job succeeds again");
        }
    }

    /// Whether a failure of this kind is to be logged: jobs that run every few seconds log only the first one.
    pub fn starts_failing(&self, job: &'static str, kind: &'static str) -> bool {
        self.failing().insert(job, kind) != Some(kind)
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<&'static str, &'static str>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the metrics.
    pub fn measure(&self) {
        catalog::UPTIME.set(self.started_at.elapsed().as_secs_f64());
        let times = self
            .succeeded_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (job, at) in times.iter() {
            catalog::JOB_AGE
                .with([*job])
                .set(at.elapsed().as_secs_f64());
        }
    }
}
