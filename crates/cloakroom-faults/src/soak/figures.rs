//! What a long load came to, minute by minute.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Memory, Window};
use crate::clients::Load;
use crate::clients::pace::Sample;
use crate::clients::tally::Rule;

/// Latencies are told for so long at a time.
const STEP: Duration = Duration::from_secs(5);
/// A node fills its caches and pools first.
const SETTLING: Duration = Duration::from_secs(60);

#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) minutes: Vec<Minute>,
    /// In steps of five seconds.
    pub(crate) p99_ms: Vec<f64>,
    /// Seconds from the start in which something was broken.
    pub(crate) broken: Vec<(String, f64, f64)>,
    pub(crate) requests: usize,
    pub(crate) failed_inside: usize,
    pub(crate) failed_outside: usize,
    /// What they were answered with, how often, and how many seconds after the start the first and the last were sent.
    pub(crate) failures: BTreeMap<u16, (usize, f64, f64)>,
    /// Of each node, in megabytes per hour.
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
    /// While nothing was broken.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) memory_mb: f64,
}

impl Figures {
    pub(crate) fn new(
        started_at: Instant,
        samples: &[Sample],
        windows: &[Window],
        memory: &[Memory],
    ) -> Self {
        let since = |at: Instant| at.saturating_duration_since(started_at).as_secs_f64();
        // A request belongs to a fault if any part of its time does.
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
        let mut failures = BTreeMap::new();
        let outside = samples
            .iter()
            .filter(|it| !it.is_served() && !is_inside(it));
        for sample in outside {
            let at = since(sample.at);
            let (count, first, last) = failures.entry(sample.status).or_insert((0, at, at));
            *count += 1;
            *first = at.min(*first);
            *last = at.max(*last);
        }
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
            failures,
            memory_slopes: (0..nodes)
                .map(|node| slope(memory, node, started_at + SETTLING))
                .collect(),
            memory_mb_max: memory.iter().map(|it| it.mb).fold(0.0, f64::max),
        }
    }

    pub(crate) fn summary(&self, load: &Load, tokens: usize) -> String {
        let slopes = self.memory_slopes.iter().map(|it| format!("{it:+.1}"));
        format!(
            "{} requests, {} failed while something was broken and {} otherwise; {tokens} tokens, {} lost, {} doubled, \
             {} wrong; {:.0} MB at most, {} MB an hour",
            self.requests,
            self.failed_inside,
            self.failed_outside,
            load.tally.count(Rule::Lost),
            load.tally.count(Rule::Doubled),
            load.tally.count(Rule::Wrong),
            self.memory_mb_max,
            slopes.collect::<Vec<_>>().join(" and ")
        )
    }
}

/// Milliseconds that this part of the answers took at most.
fn quantile<'a>(samples: impl Iterator<Item = &'a Sample>, part: f64) -> f64 {
    let mut times: Vec<Duration> = samples
        .filter(|it| it.is_served())
        .map(|it| it.took)
        .collect();
    times.sort_unstable();
    let place = (times.len() as f64 * part) as usize;
    let found = times.get(place).or(times.last());
    found.map_or(0.0, |took| took.as_secs_f64() * 1_000.0)
}

/// Megabytes per hour by which a node's memory grows, as a straight line through all of it has it.
fn slope(memory: &[Memory], node: usize, from: Instant) -> f64 {
    let points: Vec<(f64, f64)> = memory
        .iter()
        .filter(|it| it.node == node && it.at >= from)
        .map(|it| ((it.at - from).as_secs_f64() / 3_600.0, it.mb))
        .collect();
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let below: f64 = points.iter().map(|it| (it.0 - x).powi(2)).sum();
    if below > 0.0 { above / below } else { 0.0 }
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
    fn a_failure_counts_as_the_faults_if_any_part_of_its_time_is() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let window = Window {
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

        let figures = Figures::new(start, &samples, &[window], &[]);

        assert_eq!((figures.failed_inside, figures.failed_outside), (2, 2));
        assert_eq!(figures.minutes[0].failed_outside, 2);
        assert_eq!(figures.minutes[0].requests, 5);
    }

    #[test]
    fn memory_that_grows_has_a_slope() {
        let start = Instant::now();
        let seen = |minute: u64, mb| Memory {
            at: start + Duration::from_secs(60 * minute),
            node: 0,
            mb,
        };
        let growing: Vec<Memory> = (0..30).map(|it| seen(it, 60.0 + it as f64)).collect();
        let flat: Vec<Memory> = (0..30).map(|it| seen(it, 60.0)).collect();

        assert!((slope(&growing, 0, start) - 60.0).abs() < 0.01);
        assert!(slope(&flat, 0, start).abs() < 0.01);
        assert!(slope(&[], 0, start).abs() < 0.01);
    }
}
