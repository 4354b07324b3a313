//! Latencies of transactions, from pgbench's log of a sample.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Enough for a 99th percentile, and few enough that logging them has no measurable cost.
const SAMPLES_WANTED: f64 = 20_000.0;

/// Logging options of pgbench.
pub(super) struct Log {
    prefix: PathBuf,
    sampling_rate: f64,
}

impl Log {
    /// The log of the next run, with `transactions` expected.
    pub(super) fn of(folder: &Path, transactions: f64) -> Self {
        Self {
            prefix: folder.join("latencies"),
            sampling_rate: (SAMPLES_WANTED / transactions.max(1.0)).min(1.0),
        }
    }

    pub(super) fn arguments(&self) -> [String; 3] {
        [
            "--log".to_owned(),
            format!("--log-prefix={}", self.prefix.display()),
            format!("--sampling-rate={:.6}", self.sampling_rate),
        ]
    }

    /// Reads and deletes the log. Its name ends with a process id.
    pub(super) fn take(&self) -> Result<Latencies> {
        let folder = self.prefix.parent().context("a file has a folder")?;
        let mut latencies = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let file = entry?.path();
            if file.with_extension("") == self.prefix && file != self.prefix {
                parse(&std::fs::read_to_string(&file)?, &mut latencies)?;
                std::fs::remove_file(&file)?;
            }
        }
        Latencies::of(latencies)
    }
}

/// Percentiles of the logged transactions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) struct Latencies {
    pub(in crate::bench) p50_us: f64,
    pub(in crate::bench) p99_us: f64,
}

impl Latencies {
    fn of(mut latencies: Vec<u32>) -> Result<Self> {
        ensure!(!latencies.is_empty(), "pgbench logged no transaction");
        latencies.sort_unstable();
        // The nearest-rank percentile.
        let percentile = |percent: usize| {
            let rank = (latencies.len() * percent).div_ceil(100);
            f64::from(latencies[rank - 1])
        };
        Ok(Self {
            p50_us: percentile(50),
            p99_us: percentile(99),
        })
    }
}

/// The third field of each line: duration of a transaction in microseconds.
fn parse(log: &str, latencies: &mut Vec<u32>) -> Result<()> {
    for line in log.lines() {
        let latency = line.split(' ').nth(2).and_then(|field| field.parse().ok());
        latencies.push(latency.with_context(|| format!("a line without a latency: {line}"))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::of(folder.path(), 100.0);
        let lines: String = (1..=200)
            .rev()
            .map(|us| format!("0 {us} {us} 0 1763240000 {us}\n"))
            .collect();
        std::fs::write(folder.path().join("latencies.4711"), lines).unwrap();
        std::fs::write(folder.path().join("latencies-of-others.1"), "0 0 9\n").unwrap();

        let expected = Latencies {
            p50_us: 100.0,
            p99_us: 198.0,
        };
        assert_eq!(log.take().unwrap(), expected);
        assert!(log.take().is_err(), "it is still there");
    }

    #[test]
    fn lines_without_a_latency_are_refused() {
        for line in ["0 1", "0 1 failed 0 1763240000 1"] {
            assert!(parse(line, &mut Vec::new()).is_err(), "{line}");
        }
    }

    #[test]
    fn few_transactions_are_all_logged_and_many_are_sampled() {
        let cases = [(0.0, 1.0), (500.0, 1.0), (400_000.0, 0.05)];
        for (transactions, expected) in cases {
            let log = Log::of(Path::new("/nowhere"), transactions);
            assert_eq!(log.sampling_rate, expected, "{transactions}");
        }
    }
}
