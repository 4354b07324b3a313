//! The soak test: 80% of the measured capacity, and a fault every minute.

mod plot;
mod results;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

pub(crate) use self::results::SoakResults;
use crate::clients::{ClientPool, Workload};
use crate::faults::{self, Fault};
use crate::run::{RECOVERY_TIMEOUT, Run, log};
use crate::{checker, report};

/// Duration of the capacity measurement.
const CAPACITY_DURATION: Duration = Duration::from_secs(20);
const LOAD_FACTOR: f64 = 0.8;
/// Time after a fault in which its effects may last: new connections, draining queues.
const RECOVERY_GRACE: Duration = Duration::from_secs(3);
const MINUTE: Duration = Duration::from_secs(60);
const MEMORY_INTERVAL: Duration = Duration::from_secs(5);

/// Faults that do not restart nodes, so that their memory usage is comparable.
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

/// The period of a fault.
#[derive(Clone)]
pub(crate) struct FaultWindow {
    pub(crate) fault: &'static str,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// Memory usage of a node in megabytes.
#[derive(Clone, Copy)]
pub(crate) struct MemorySample {
    pub(crate) at: Instant,
    pub(crate) node: usize,
    pub(crate) mb: f64,
}

impl Soak {
    pub(crate) async fn run(&self, run: &mut Run) -> Result<()> {
        let capacity = measure_capacity(run).await?;
        let rate = capacity * LOAD_FACTOR;
        log(&format!(
            "capacity {capacity:.0} requests/s; running {rate:.0} requests/s for {} minutes, with a fault in each",
            self.minutes
        ));
        let workload = Arc::new(run.paced_workload(Some(rate))?);
        let started_at = Instant::now();
        let clients = ClientPool::start(&workload, run.plan.clients);
        let (windows, memory) = tokio::join!(
            self.inject(run, &workload, started_at),
            sample_memory(run, started_at + MINUTE * u32::try_from(self.minutes)?)
        );
        clients.finish().await;
        // A violation outranks a failure of the machine, which would be retried.
        if windows.is_err() {
            workload.stats.require_no_violations()?;
        }
        let windows = windows?;

        let tokens = checker::check(&workload, &run.nodes).await?;
        let cluster = &run.environment.cluster;
        checker::check_audit_log(&workload, cluster).await?;
        checker::check_outbound(&workload, &run.receiver, cluster).await?;
        let samples = workload.pacer.samples();
        let results = SoakResults::new(started_at, &samples, &windows, &memory?);
        println!("\n{}\n", report::soak(&results));
        log(&results.summary(&workload, tokens));
        if let Some(file) = &self.json {
            std::fs::write(file, serde_json::to_string_pretty(&results)?)
                .with_context(|| file.display().to_string())?;
        }
        if let Some(file) = &self.svg {
            std::fs::write(file, plot::svg(&results))
                .with_context(|| file.display().to_string())?;
        }
        workload.stats.require_no_violations()?;
        let failed = results.failed_outside;
        ensure!(
            failed == 0,
            "{failed} requests failed outside of faults: {:?}",
            results.failures
        );
        Ok(())
    }

    /// Injects a fault at the beginning of each minute.
    async fn inject(
        &self,
        run: &Run,
        workload: &Arc<Workload>,
        started_at: Instant,
    ) -> Result<Vec<FaultWindow>> {
        let mut windows = Vec::new();
        let names = FAULTS.iter().cycle().take(usize::try_from(self.minutes)?);
        for (minute, name) in (0_u32..).zip(names) {
            // Part of the minute remains without a fault.
            let begin = started_at + MINUTE * minute + MINUTE / 6;
            tokio::time::sleep_until(begin.into()).await;
            let fault: &Fault = faults::find(name).context("no such fault")?;
            let from = Instant::now();
            let injected = (fault.inject)(&run.environment, workload).await;
            injected.with_context(|| run.environment.cluster.log_tails())?;
            let healthy = run
                .environment
                .cluster
                .wait_until_healthy(RECOVERY_TIMEOUT)
                .await;
            healthy.with_context(|| run.environment.cluster.log_tails())?;
            let to = Instant::now() + RECOVERY_GRACE;
            let seconds = (to - from).as_secs_f64();
            log(&format!("minute {}: {name}, {seconds:.0} s", minute + 1));
            windows.push(FaultWindow {
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

/// Requests per second of clients without a rate limit.
async fn measure_capacity(run: &mut Run) -> Result<f64> {
    log("measuring the capacity of the cluster");
    let workload = Arc::new(run.paced_workload(None)?);
    let clients = ClientPool::start(&workload, run.plan.clients);
    tokio::time::sleep(CAPACITY_DURATION / 4).await;
    let from = Instant::now();
    tokio::time::sleep(CAPACITY_DURATION).await;
    let samples = workload.pacer.samples();
    clients.finish().await;
    let served = samples.iter().filter(|it| it.is_served() && it.at >= from);
    Ok(served.count() as f64 / CAPACITY_DURATION.as_secs_f64())
}

/// Samples the memory usage of each node.
async fn sample_memory(run: &Run, until: Instant) -> Result<Vec<MemorySample>> {
    let mut samples = Vec::new();
    while Instant::now() < until {
        for (node, machine) in run.environment.cluster.nodes.iter().enumerate() {
            let at = Instant::now();
            for pid in machine.machine.pids("cloakroom").await? {
                let mb = resident(pid.as_raw()).unwrap_or_default();
                samples.push(MemorySample { at, node, mb });
            }
        }
        tokio::time::sleep(MEMORY_INTERVAL).await;
    }
    Ok(samples)
}

fn resident(pid: i32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
