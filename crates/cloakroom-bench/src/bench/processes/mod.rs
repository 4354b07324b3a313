//! CPU time and memory of running processes, from `/proc`.

use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;

/// The unit of times in `/proc`: 100 per second on all common Linux machines.
const TICK: Duration = Duration::from_millis(10);

/// Process ids of the processes that handle a request.
pub(super) struct Processes {
    pub(super) proxy: Option<u32>,
    /// The measured nodes, or the baseline.
    pub(super) servers: Vec<u32>,
    pub(super) postgres: u32,
    pub(super) redis: u32,
}

/// CPU time by kind of process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CpuTimes {
    /// Child processes that have exited: wrk or pgbench.
    load: Duration,
    proxy: Duration,
    servers: Duration,
    postgres: Duration,
    redis: Duration,
}

/// Microseconds of CPU time per request, by kind of process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct CpuShares {
    #[serde(rename = "load_cpu_us")]
    pub(super) load: f64,
    #[serde(rename = "proxy_cpu_us", skip_serializing_if = "is_zero")]
    pub(super) proxy: f64,
    #[serde(rename = "server_cpu_us")]
    pub(super) servers: f64,
    #[serde(rename = "postgres_cpu_us")]
    pub(super) postgres: f64,
    #[serde(rename = "redis_cpu_us")]
    pub(super) redis: f64,
}

impl Processes {
    pub(super) fn cpu_times(&self) -> Result<CpuTimes> {
        let all = |pids: &[u32]| pids.iter().map(|pid| cpu_time(*pid)).sum::<Result<_>>();
        let load = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        Ok(CpuTimes {
            load: duration(load.user_time()) + duration(load.system_time()),
            proxy: all(self.proxy.as_slice())?,
            servers: all(&self.servers)?,
            postgres: family_cpu_time(self.postgres)?,
            redis: cpu_time(self.redis)?,
        })
    }
}

impl Sub for CpuTimes {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            load: self.load.saturating_sub(before.load),
            proxy: self.proxy.saturating_sub(before.proxy),
            servers: self.servers.saturating_sub(before.servers),
            postgres: self.postgres.saturating_sub(before.postgres),
            redis: self.redis.saturating_sub(before.redis),
        }
    }
}

impl CpuTimes {
    pub(super) fn shared_by(self, requests: u64) -> CpuShares {
        let share = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
        CpuShares {
            load: share(self.load),
            proxy: share(self.proxy),
            servers: share(self.servers),
            postgres: share(self.postgres),
            redis: share(self.redis),
        }
    }
}

impl CpuShares {
    pub(super) fn sum(&self) -> f64 {
        self.load + self.proxy + self.servers + self.postgres + self.redis
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec()).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// CPU time of all threads of a process, including exited ones.
fn cpu_time(pid: u32) -> Result<Duration> {
    Ok(stat(pid)?.own)
}

/// The same for a process and its children, including exited ones.
fn family_cpu_time(pid: u32) -> Result<Duration> {
    let mut living = Duration::ZERO;
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that exits meanwhile is counted by its parent.
        if let Ok(process) = stat(number)
            && process.parent == pid
        {
            living += process.own;
        }
    }
    let parent = stat(pid)?;
    Ok(living + parent.own + parent.ended_children)
}

/// Peak memory of a process in megabytes.
pub(super) fn memory_mb(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    parse_memory(&status).with_context(|| format!("a process without memory: {status}"))
}

fn parse_memory(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}

#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

fn stat(pid: u32) -> Result<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("process {pid} is gone"))?;
    parse_stat(&text).with_context(|| format!("a process without times: {text}"))
}

/// Fields 4 and 14 to 17, counted after the name, which may contain any character.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |field: usize| -> Option<Duration> {
        let ticks: u32 = fields.get(field - 3)?.parse().ok()?;
        Some(TICK * ticks)
    };
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(14)? + ticks(15)?,
        ended_children: ticks(16)? + ticks(17)?,
    })
}

#[cfg(test)]
mod tests;
