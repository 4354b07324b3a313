//! A long load: four fifths of what the cluster can do, and a fault every minute.

mod figures;
mod plot;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

pub(crate) use self::figures::Figures;
use crate::clients::{Crowd, Load};
use crate::faults::{self, Fault};
use crate::run::{Run, SETTLED_WITHIN, say};
use crate::{checker, report};

/// How long the most that the cluster can do is measured.
const MEASURED_FOR: Duration = Duration::from_secs(20);
const PART_OF_MOST: f64 = 0.8;
/// How long after a fault was mended its traces may be seen: connections that are made anew, queues that empty.
const AFTERMATH: Duration = Duration::from_secs(3);
const MINUTE: Duration = Duration::from_secs(60);
const MEMORY_PAUSE: Duration = Duration::from_secs(5);

/// Faults that no node has to be started again for, so that its memory tells something.
const FAULTS: [&str; 7] = [
    "primary-kill",
    "slow-database",
    "redis-kill",
    "partition-nodes",
    "node-stop",
    "partition-redis",
    "primary-stop",
];

pub(crate) struct Soak {
    pub(crate) minutes: u64,
    pub(crate) json: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
}

/// When something was broken, and what.
#[derive(Clone)]
pub(crate) struct Window {
    pub(crate) fault: &'static str,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// Memory of a node in megabytes.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) at: Instant,
    pub(crate) node: usize,
    pub(crate) mb: f64,
}

impl Soak {
    pub(crate) async fn run(&self, run: &mut Run) -> Result<()> {
        let most = measure(run).await?;
        let rate = most * PART_OF_MOST;
        say(&format!(
            "{most:.0} requests a second at most; {rate:.0} for {} minutes, with a fault in each",
            self.minutes
        ));
        let load = Arc::new(run.paced_load(Some(rate))?);
        let started_at = Instant::now();
        let crowd = Crowd::start(&load, run.plan.clients);
        let (windows, memory) = tokio::join!(
            self.strike(run, &load, started_at),
            watch(run, started_at + MINUTE * u32::try_from(self.minutes)?)
        );
        let windows = windows?;
        crowd.finish().await;

        let tokens = checker::check(&load, &run.nodes).await?;
        checker::check_records(&load, &run.stage.cluster).await?;
        let samples = load.pace.samples();
        let figures = Figures::new(started_at, &samples, &windows, &memory?);
        println!("\n{}\n", report::soak(&figures));
        say(&figures.summary(&load, tokens));
        if let Some(file) = &self.json {
            std::fs::write(file, serde_json::to_string_pretty(&figures)?)
                .with_context(|| file.display().to_string())?;
        }
        if let Some(file) = &self.svg {
            std::fs::write(file, plot::svg(&figures))
                .with_context(|| file.display().to_string())?;
        }
        let broken = load.tally.told();
        ensure!(broken.is_empty(), "promises were broken: {broken:#?}");
        let failed = figures.failed_outside;
        ensure!(
            failed == 0,
            "{failed} requests failed while nothing was broken: {:?}",
            figures.failures
        );
        Ok(())
    }

    /// A fault at the beginning of each minute.
    async fn strike(
        &self,
        run: &Run,
        load: &Arc<Load>,
        started_at: Instant,
    ) -> Result<Vec<Window>> {
        let mut windows = Vec::new();
        let names = FAULTS.iter().cycle().take(usize::try_from(self.minutes)?);
        for (minute, name) in (0_u32..).zip(names) {
            // Half of the minute is left to see what happens while nothing is broken.
            let begin = started_at + MINUTE * minute + MINUTE / 6;
            tokio::time::sleep_until(begin.into()).await;
            let fault: &Fault = faults::find(name).context("no such fault")?;
            let from = Instant::now();
            let struck = (fault.strike)(&run.stage, load).await;
            struck.with_context(|| run.stage.cluster.log_tails())?;
            let settled = run.stage.cluster.wait_until_settled(SETTLED_WITHIN).await;
            settled.with_context(|| run.stage.cluster.log_tails())?;
            let to = Instant::now() + AFTERMATH;
            let seconds = (to - from).as_secs_f64();
            say(&format!("minute {}: {name}, {seconds:.0} s", minute + 1));
            windows.push(Window {
                fault: fault.name,
                from,
                to,
            });
        }
        let end = started_at + MINUTE * u32::try_from(self.minutes)?;
        tokio::time::sleep_until(end.into()).await;
        Ok(windows)
    }
}

/// How many requests a second clients get answered that do not wait.
async fn measure(run: &mut Run) -> Result<f64> {
    say("measuring what the cluster can do");
    let load = Arc::new(run.paced_load(None)?);
    let crowd = Crowd::start(&load, run.plan.clients);
    tokio::time::sleep(MEASURED_FOR / 4).await;
    let from = Instant::now();
    tokio::time::sleep(MEASURED_FOR).await;
    let samples = load.pace.samples();
    crowd.finish().await;
    let answered = samples.iter().filter(|it| it.is_served() && it.at >= from);
    Ok(answered.count() as f64 / MEASURED_FOR.as_secs_f64())
}

/// Looks at the memory of each node until the end.
async fn watch(run: &Run, until: Instant) -> Result<Vec<Memory>> {
    let mut seen = Vec::new();
    while Instant::now() < until {
        for (node, machine) in run.stage.cluster.nodes.iter().enumerate() {
            let at = Instant::now();
            for pid in machine.machine.pids("cloakroom").await? {
                let mb = resident(pid.as_raw()).unwrap_or_default();
                seen.push(Memory { at, node, mb });
            }
        }
        tokio::time::sleep(MEMORY_PAUSE).await;
    }
    Ok(seen)
}

fn resident(pid: i32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
