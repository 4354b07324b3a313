//! Load over HTTP: wrk with a Lua script.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::command::capture;
use super::vault::Keys;

const SCRIPT: &str = include_str!("load.lua");

/// More than the requests of any run, so that no two runs use the same card number.
const NUMBERS_PER_RUN: u64 = 1_000_000_000;

/// Retries a run that failed because the machine stalled.
const ATTEMPTS: u32 = 3;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, clap::ValueEnum)]
pub(super) enum Operation {
    #[serde(rename = "create")]
    Create,
    /// With an idempotency key of its own.
    #[serde(rename = "create once")]
    #[value(skip)]
    CreateOnce,
    #[serde(rename = "get masked")]
    #[value(name = "masked")]
    GetMasked,
    #[serde(rename = "get revealed")]
    #[value(name = "revealed")]
    GetRevealed,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::CreateOnce => "create once",
            Self::GetMasked => "get masked",
            Self::GetRevealed => "get revealed",
        }
    }
}

/// Results of one run of wrk.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(super) struct Outcome {
    pub(super) requests: u64,
    duration_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Failed or broken connections, timeouts, and responses with a status of 400 or more.
    errors: u64,
}

impl Outcome {
    #[cfg(test)]
    pub(super) fn with_requests(requests: u64) -> Self {
        Self {
            requests,
            duration_us: 1e6,
            p50_us: 500.0,
            p99_us: 1000.0,
            errors: 0,
        }
    }

    pub(super) fn requests_per_s(&self) -> f64 {
        self.requests as f64 / (self.duration_us / 1e6)
    }
}

pub(super) struct Load {
    pub(super) address: String,
    pub(super) keys: Keys,
    pub(super) first_id: String,
    script: PathBuf,
    ids: PathBuf,
    /// Counted for all targets together.
    runs: Rc<Cell<u64>>,
}

impl Load {
    pub(super) fn new(address: &str, keys: Keys, folder: &Path) -> Result<Self> {
        let script = folder.join("load.lua");
        std::fs::write(&script, SCRIPT)?;
        Ok(Self {
            address: address.to_owned(),
            keys,
            first_id: String::new(),
            script,
            ids: folder.join("ids"),
            runs: Rc::default(),
        })
    }

    /// The same requests to another address.
    pub(super) fn sent_to(&self, address: &str) -> Self {
        Self {
            address: address.to_owned(),
            keys: self.keys.clone(),
            first_id: self.first_id.clone(),
            script: self.script.clone(),
            ids: self.ids.clone(),
            runs: Rc::clone(&self.runs),
        }
    }

    /// Sets the ids of tokens to get, one per line.
    pub(super) fn choose_from(&mut self, ids: &str) -> Result<()> {
        let first = ids.lines().next().context("there are no tokens")?;
        self.first_id = first.to_owned();
        Ok(std::fs::write(&self.ids, ids)?)
    }

    /// The file with the ids of tokens.
    pub(super) fn ids(&self) -> &Path {
        &self.ids
    }

    /// Measures, and repeats a run that failed.
    pub(super) async fn run(
        &self,
        operation: Operation,
        connections: u32,
        seconds: u32,
    ) -> Result<Outcome> {
        for attempt in 1.. {
            match self.run_once(operation, connections, seconds).await {
                Err(error) if attempt < ATTEMPTS => eprintln!("bench: measuring again: {error:#}"),
                settled => return settled,
            }
        }
        unreachable!("attempts end")
    }

    async fn run_once(
        &self,
        operation: Operation,
        connections: u32,
        seconds: u32,
    ) -> Result<Outcome> {
        let first_number = self.runs.get() * NUMBERS_PER_RUN;
        self.runs.set(self.runs.get() + 1);
        let mut wrk = Command::new("wrk");
        wrk.arg("--threads=1")
            .arg(format!("--connections={connections}"))
            .arg(format!("--duration={seconds}s"))
            // Tolerates a machine that stalls for a while.
            .arg("--timeout=30s")
            .arg("--script")
            .arg(&self.script)
            .arg(format!("http://{}", self.address))
            .env("BENCH_KEY", self.keys.of(operation))
            .env("BENCH_FIRST_NUMBER", first_number.to_string());
        match operation {
            Operation::Create => {}
            Operation::CreateOnce => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
                wrk.env("BENCH_ONCE", format!("{:032}", now.as_nanos()));
            }
            Operation::GetMasked | Operation::GetRevealed => {
                wrk.env("BENCH_IDS", &self.ids);
            }
        }
        parse(&capture(wrk).await?)
    }
}

/// The script's line in wrk's report; an error if a request failed.
pub(super) fn parse(report: &str) -> Result<Outcome> {
    let line = report
        .lines()
        .find(|line| line.starts_with('{'))
        .with_context(|| format!("wrk reports no result:\n{report}"))?;
    let outcome: Outcome = serde_json::from_str(line).with_context(|| line.to_owned())?;
    ensure!(outcome.errors == 0, "requests failed:\n{report}");
    ensure!(outcome.requests > 0, "no request succeeded:\n{report}");
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"Running 2s test @ http://127.0.0.1:8080
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.11ms    0.40ms  12.61ms   89.01%
Requests/sec:  14261.36
{"requests":28600,"duration_us":2002300,"p50_us":1050,"p99_us":2310,"errors":0}
"#;

    #[test]
    fn the_result_is_read_from_its_line() {
        let outcome = parse(REPORT).unwrap();

        assert_eq!(outcome.requests, 28600);
        assert_eq!(outcome.requests_per_s().round(), 14284.0);
        assert_eq!((outcome.p50_us, outcome.p99_us), (1050.0, 2310.0));
    }

    #[test]
    fn failures_and_missing_results_are_errors() {
        let cases = [
            REPORT.replace("\"errors\":0", "\"errors\":1"),
            REPORT.replace("28600", "0"),
            REPORT.replace("\"p99_us\":2310,", ""),
            "Running 2s test\n".to_owned(),
        ];
        for report in cases {
            assert!(parse(&report).is_err(), "{report}");
        }
    }
}
