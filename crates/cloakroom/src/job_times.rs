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
    /// Records a run of a job, with the kind of its error if it failed.
    ///
    /// Returns the kind if it is to be logged: jobs that run every few seconds log only the first failure of a kind.
    pub fn record(&self, job: &'static str, failure: Option<&'static str>) -> Option<&'static str> {
        if let Some(kind) = failure {
            catalog::JOB_FAILURES.with([job]).increment(1);
            return (self.failing().insert(job, kind) != Some(kind)).then_some(kind);
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
        None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_a_kind_is_to_be_logged() {
        let jobs = JobTimes::default();
        let steps = [
            (None, None),
            (Some("database_unavailable"), Some("database_unavailable")),
            (Some("database_unavailable"), None),
            (Some("database_refused"), Some("database_refused")),
            (None, None),
            (Some("database_refused"), Some("database_refused")),
        ];

        for (step, (failure, logged)) in steps.into_iter().enumerate() {
            assert_eq!(jobs.record("sweep", failure), logged, "{step}");
        }
        assert_eq!(jobs.record("watch", steps[1].0), steps[1].1, "another job");
    }
}
