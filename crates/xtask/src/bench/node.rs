//! The node that is measured: started, ready, its CPU time read, stopped.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;

use super::probe;
use super::vault::Vault;

/// Ends the node with this process, even when this process is killed.
const LAUNCHER: [&str; 3] = ["setpriv", "--pdeathsig", "TERM"];

const READY_WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_PAUSE: Duration = Duration::from_millis(20);
const LOG_TAIL_LINES: usize = 5;

/// The unit of times in `/proc`: Linux counts a hundred per second on all common machines.
const TICK: Duration = Duration::from_millis(10);

/// A running node; killed when dropped.
pub(super) struct Node {
    pub(super) address: String,
    process: Child,
    pid: i32,
    log: PathBuf,
}

impl Node {
    pub(super) async fn start(vault: &Vault, folder: &Path) -> Result<Self> {
        Self::start_with(vault, &folder.join("node.log"), &[]).await
    }

    /// Starts a node with further settings, named as in its environment.
    pub(super) async fn start_with(
        vault: &Vault,
        log: &Path,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let [api, admin] = free_addresses()?;
        let process = vault
            .command(&LAUNCHER)
            .arg("serve")
            .env("CLOAKROOM__HTTP__LISTEN", api.to_string())
            .env("CLOAKROOM__ADMIN__LISTEN", admin.to_string())
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log)?)
            .kill_on_drop(true)
            .spawn()
            .context("starting the node")?;
        let pid = process.id().context("the node has no process")?;
        let mut node = Self {
            address: api.to_string(),
            process,
            pid: pid.cast_signed(),
            log: log.to_owned(),
        };
        node.wait_until_ready(&admin.to_string()).await?;
        Ok(node)
    }

    async fn wait_until_ready(&mut self, admin: &str) -> Result<()> {
        let asked_at = Instant::now();
        while probe::get(admin, "/readyz", "").await.is_err() {
            let has_ended = self.process.try_wait()?.is_some();
            if has_ended || asked_at.elapsed() > READY_WAIT_MAX {
                bail!("the node does not get ready; {}", self.log_tail());
            }
            tokio::time::sleep(POLL_PAUSE).await;
        }
        Ok(())
    }

    /// What all threads of the node have used so far.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .context("the node is gone")?;
        parse_cpu_time(&stat).with_context(|| format!("a process without times: {stat}"))
    }

    /// Where the log ends, for messages about failures.
    pub(super) fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(LOG_TAIL_LINES).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("the node's log ends with:\n{}\n", lines.join("\n"))
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(self.pid), Signal::SIGTERM).context("stopping the node")?;
        let status = self.process.wait().await?;
        ensure!(
            status.success(),
            "the node ended with {status}; {}",
            self.log_tail()
        );
        Ok(())
    }
}

/// Two addresses that nobody listens on at this moment.
fn free_addresses() -> Result<[SocketAddr; 2]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let (one, other) = (listen()?, listen()?);
    Ok([one.local_addr()?, other.local_addr()?])
}

/// User and system time: fields 14 and 15, counted behind the name, which may hold anything.
fn parse_cpu_time(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).take(2).map(str::parse::<u32>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some(TICK * (user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_user_and_system_time() {
        let cases = [
            (
                "7 (cloak) room) S 1 7 7 0 -1 4194304 900 0 0 0 250 50 0 0 20 0 5 0 1000",
                Some(Duration::from_secs(3)),
            ),
            ("7 (cloakroom) S 1 7 7 0", None),
            ("", None),
        ];
        for (stat, expected) in cases {
            assert_eq!(parse_cpu_time(stat), expected, "{stat}");
        }
    }
}
