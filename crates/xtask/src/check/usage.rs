//! What a step costs the machine: time, processor time, and what other machines on the same host took.

use std::fs;
use std::time::{Duration, Instant};

/// Of `/proc/stat`, on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) struct Stopwatch {
    started_at: Instant,
    before: Option<Processors>,
}

#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Usage {
    pub elapsed: Duration,
    /// Processor time of the whole machine, including servers that a step starts.
    pub cpu_seconds: f64,
    /// Time that the host gave to others while this machine wanted it.
    pub stolen_seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Processors {
    busy: f64,
    stolen: f64,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self {
            started_at: Instant::now(),
            before: Processors::read(),
        }
    }

    pub(super) fn stop(&self) -> Usage {
        let used = self.before.zip(Processors::read());
        let (cpu_seconds, stolen_seconds) = used.map_or((0.0, 0.0), |(before, after)| {
            (after.busy - before.busy, after.stolen - before.stolen)
        });
        Usage {
            elapsed: self.started_at.elapsed(),
            cpu_seconds,
            stolen_seconds,
        }
    }
}

impl Processors {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Option<Vec<f64>> = line
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks?[..] else {
            return None;
        };
        Some(Self {
            busy: (user + nice + system + irq + softirq) / TICKS_PER_SECOND,
            stolen: steal / TICKS_PER_SECOND,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_no_processor_time() {
        let text = "cpu  100 20 30 9000 800 4 6 50 0 0\ncpu0 1 1 1\n";

        let parsed = Processors::parse(text);

        let expected = Processors {
            busy: 1.6,
            stolen: 0.5,
        };
        assert_eq!(parsed, Some(expected));
        assert_eq!(Processors::parse("intr 1"), None);
    }
}
