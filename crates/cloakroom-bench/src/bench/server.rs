//! Server processes: start, readiness, stop.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cloakroom_scratch::free_port;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::probe;

/// Stops the program when this process exits or is killed.
pub(super) const LAUNCHER: [&str; 3] = ["setpriv", "--pdeathsig", "TERM"];

const READY_WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_PAUSE: Duration = Duration::from_millis(20);
const LOG_TAIL_LINES: usize = 5;

/// A running server; killed when dropped.
pub(super) struct Server {
    pub(super) address: String,
    pub(super) pid: u32,
    process: Child,
    log: PathBuf,
}

/// The readiness endpoint of a server.
pub(super) struct Ready<'a> {
    pub(super) address: &'a str,
    pub(super) path: &'a str,
}

impl Server {
    /// Starts a program that listens at `address`, and waits until it is ready.
    pub(super) async fn start(
        mut command: Command,
        address: &str,
        ready: Ready<'_>,
        log: &Path,
    ) -> Result<Self> {
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {:?}", command.as_std().get_program()))?;
        let mut server = Self {
            address: address.to_owned(),
            pid: process.id().context("a server without a process")?,
            process,
            log: log.to_owned(),
        };
        server.wait_until(ready).await?;
        Ok(server)
    }

    async fn wait_until(&mut self, ready: Ready<'_>) -> Result<()> {
        let asked_at = Instant::now();
        while probe::get(ready.address, ready.path, "").await.is_err() {
            let has_ended = self.process.try_wait()?.is_some();
            if has_ended || asked_at.elapsed() > READY_WAIT_MAX {
                bail!("a server did not become ready; {}", self.log_tail());
            }
            tokio::time::sleep(POLL_PAUSE).await;
        }
        Ok(())
    }

    /// The last lines of the log, for error messages.
    pub(super) fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(LOG_TAIL_LINES).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("its log ends with:\n{}\n", lines.join("\n"))
    }

    /// Sends SIGTERM, and returns an error unless the server exits successfully.
    pub(super) async fn stop(mut self) -> Result<()> {
        let pid = Pid::from_raw(self.pid.cast_signed());
        kill(pid, Signal::SIGTERM).context("stopping a server")?;
        let status = self.process.wait().await?;
        ensure!(
            status.success(),
            "a server failed: {status}; {}",
            self.log_tail()
        );
        Ok(())
    }
}

/// A program behind `launcher`, with an empty environment except `PATH`: the developer's settings do not affect
/// measurements.
pub(super) fn bare(launcher: &[&str], program: &Path) -> Command {
    let mut command = match launcher {
        [] => Command::new(program),
        [first, arguments @ ..] => {
            let mut command = Command::new(first);
            command.args(arguments).arg(program);
            command
        }
    };
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Two unused addresses.
pub(super) fn free_addresses() -> Result<[SocketAddr; 2]> {
    let ports = [free_port()?, free_port()?];
    Ok(ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
}
