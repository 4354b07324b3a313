//! The results of a soak test by minute.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{FaultWindow, MemorySample};
use crate::clients::Workload;
use crate::clients::pacer::Sample;
use crate::clients::stats::Invariant;

/// Interval of latency percentiles.
const STEP: Duration = Duration::from_secs(5);
/// Time for a node to fill its caches and pools.
const WARM_UP: Duration = Duration::from_secs(60);

#[derive(Serialize)]
pub(crate) struct SoakResults {
    pub(crate) minutes: Vec<Minute>,
    /// By interval of five seconds.
    pub(crate) p99_ms: Vec<f64>,
    /// Faults with start and end in seconds from the start.
    pub(crate) broken: Vec<(String, f64, f64)>,
    pub(crate) requests: usize,
    pub(crate) failed_inside: usize,
    pub(crate) failed_outside: usize,
    /// Failures outside of faults by status: count, and seconds from the start of the first and the last.
    pub(crate) failures: BTreeMap<u16, (usize, f64, f64)>,
    /// Memory growth of each node in megabytes per hour.
    pub(crate) memory_slopes: Vec<f64>,
    pub(crate) memory_mb_max: f64,
}

#[derive(Serialize)]
pub(crate) struct Minute {
    pub(crate) fault: String,
    pub(crate) broken_s: f64,
    pub(crate) requests: usize,
    pub(crate) failed_inside: usize,
    pub(crate) failed_outside: usize,
    /// Outside of faults.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) memory_mb: f64,
}

impl SoakResults {
    pub(crate) fn new(
        started_at: Instant,
        samples: &[Sample],
        windows: &[FaultWindow],
        memory: &[MemorySample],
    ) -> Self {
        let since = |at: Instant| at.saturating_duration_since(started_at).as_secs_f64();
        // A request counts as during a fault if it overlaps it.
        let is_inside = |sample: &Sample| {
            windows
                .iter()
                .any(|it| sample.at < it.to && sample.at + sample.took > it.from)
        };
        let failed = |inside: bool| {
            let failed = samples.iter().filter(|it| !it.is_served());
            failed.filter(|it| is_inside(it) == inside).count()
        };
        let minutes = windows.iter().enumerate().map(|(number, window)| {
            let of_minute = |at: Instant| (since(at) / 60.0) as usize == number;
            let (inside, outside): (Vec<&Sample>, Vec<&Sample>) = samples
                .iter()
                .filter(|it| of_minute(it.at))
                .partition(|it| is_inside(it));
            let count_failed =
                |samples: &[&Sample]| samples.iter().filter(|it| !it.is_served()).count();
            let own = memory.iter().filter(|it| of_minute(it.at));
            Minute {
                fault: window.fault.to_owned(),
                broken_s: (window.to - window.from).as_secs_f64(),
                requests: inside.len() + outside.len(),
                failed_inside: count_failed(&inside),
                failed_outside: count_failed(&outside),
                p50_ms: quantile(outside.iter().copied(), 0.5),
                p99_ms: quantile(outside.iter().copied(), 0.99),
                memory_mb: own.map(|it| it.mb).fold(0.0, f64::max),
            }
        });
        let steps = samples.iter().map(|it| since(it.at)).fold(0.0, f64::max) / STEP.as_secs_f64();
        let p99_ms = (0..=steps as usize).map(|step| {
            let of_step = |it: &&Sample| (since(it.at) / STEP.as_secs_f64()) as usize == step;
            quantile(samples.iter().filter(of_step), 0.99)
        });
        let failed_samples = samples.iter().filter(|it| !it.is_served());
        let failures = failed_samples
            .filter(|it| !is_inside(it))
            .map(|it| (it.status, since(it.at)));
        let nodes = memory.iter().map(|it| it.node + 1).max().unwrap_or(0);
        Self {
            minutes: minutes.collect(),
            p99_ms: p99_ms.collect(),
            broken: windows
                .iter()
                .map(|it| (it.fault.to_owned(), since(it.from), since(it.to)))
                .collect(),
            requests: samples.len(),
            failed_inside: failed(true),
            failed_outside: failed(false),
            failures: by_status(failures),
            memory_slopes: (0..nodes)
                .map(|node| slope(memory, node, started_at + WARM_UP))
                .collect(),
            memory_mb_max: memory.iter().map(|it| it.mb).fold(0.0, f64::max),
        }
    }

    pub(crate) fn summary(&self, workload: &Workload, tokens: usize) -> String {
        let slopes = self.memory_slopes.iter().map(|it| format!("{it:+.1}"));
        format!(
            "{} requests, {} failed during faults and {} otherwise; {tokens} tokens, {} lost, {} doubled, \
             {} wrong; {:.0} MB maximum memory, growing by {} MB per hour",
            self.requests,
            self.failed_inside,
            self.failed_outside,
            workload.stats.count(Invariant::Lost),
            workload.stats.count(Invariant::Doubled),
            workload.stats.count(Invariant::Wrong),
            self.memory_mb_max,
            slopes.collect::<Vec<_>>().join(" and ")
        )
    }
}

/// Count, first and last time of failures by status.
fn by_status(failures: impl Iterator<Item = (u16, f64)>) -> BTreeMap<u16, (usize, f64, f64)> {
    let mut statuses = BTreeMap::new();
    for (status, at) in failures {
        let (count, first, last) = statuses.entry(status).or_insert((0, at, at));
        *count += 1;
        *first = at.min(*first);
        *last = at.max(*last);
    }
    statuses
}

/// Latency quantile of served requests in milliseconds.
fn quantile<'a>(samples: impl Iterator<Item = &'a Sample>, quantile: f64) -> f64 {
    let mut times: Vec<Duration> = samples
        .filter(|it| it.is_served())
        .map(|it| it.took)
        .collect();
    times.sort_unstable();
    let place = (times.len() as f64 * quantile) as usize;
    let found = times.get(place).or(times.last());
    found.map_or(0.0, |took| took.as_secs_f64() * 1_000.0)
}

/// Memory growth of a node in megabytes per hour, by linear regression.
fn slope(memory: &[MemorySample], node: usize, from: Instant) -> f64 {
    let points: Vec<(f64, f64)> = memory
        .iter()
        .filter(|it| it.node == node && it.at >= from)
        .map(|it| ((it.at - from).as_secs_f64() / 3_600.0, it.mb))
        .collect();
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let variance: f64 = points.iter().map(|it| (it.0 - x).powi(2)).sum();
    if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Instant, took_ms: u64, is_served: bool) -> Sample {
        Sample {
            at,
            took: Duration::from_millis(took_ms),
            status: if is_served { 200 } else { 503 },
        }
    }

    #[test]
    fn a_failure_that_overlaps_a_fault_counts_as_during_the_fault() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let window = FaultWindow {
            fault: "a fault",
            from: at(10),
            to: at(20),
        };
        let samples = [
            sample(at(9), 2_000, false),
            sample(at(19), 10, false),
            sample(at(5), 10, true),
            sample(at(21), 10, false),
            sample(at(8), 1_000, false),
        ];

        let results = SoakResults::new(start, &samples, &[window], &[]);

        assert_eq!((results.failed_inside, results.failed_outside), (2, 2));
        assert_eq!(results.minutes[0].failed_outside, 2);
        assert_eq!(results.minutes[0].requests, 5);
    }

    #[test]
    fn growing_memory_has_a_positive_slope() {
        let start = Instant::now();
        let sample = |minute: u64, mb| MemorySample {
            at: start + Duration::from_secs(60 * minute),
            node: 0,
            mb,
        };
        let growing: Vec<MemorySample> = (0..30).map(|it| sample(it, 60.0 + it as f64)).collect();
        let flat: Vec<MemorySample> = (0..30).map(|it| sample(it, 60.0)).collect();

        assert!((slope(&growing, 0, start) - 60.0).abs() < 0.01);
        assert!(slope(&flat, 0, start).abs() < 0.01);
        assert!(slope(&[], 0, start).abs() < 0.01);
    }
}
