//! A machine: a network namespace with processes.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::command::run;
use super::files::DATABASE_USER;
use crate::machine_failure::MachineFailure;

pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    pub(crate) folder: PathBuf,
    pub(crate) namespace: String,
    /// Running programs by name.
    running: Mutex<HashMap<&'static str, Child>>,
}

impl Machine {
    pub(crate) fn new(
        name: &'static str,
        address: String,
        folder: PathBuf,
        namespace: String,
    ) -> Self {
        Self {
            name,
            address,
            folder,
            namespace,
            running: Mutex::default(),
        }
    }

    /// A command in this machine's network namespace, as root or as the database user.
    pub(crate) fn command(&self, program: &str, is_database: bool) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace));
        if is_database {
            command.args(["setpriv", "--reuid", DATABASE_USER, "--regid"]);
            command.args([DATABASE_USER, "--init-groups"]);
        }
        command.arg(program).env_clear().current_dir(&self.folder);
        command.env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        command.env("HOME", &self.folder).env("LC_ALL", "C.UTF-8");
        command
    }

    /// Starts a long-running program with its own log file.
    pub(crate) fn spawn(&self, name: &'static str, mut command: Command) -> Result<()> {
        let log = self.folder.join(name).with_extension("log");
        let log = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Only the program that owns the cluster handles interrupts of the terminal.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(name, child);
        Ok(())
    }

    fn pid(&self, name: &str) -> Result<Pid> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = running.get(name).and_then(Child::id);
        let pid = pid.with_context(|| format!("{name} is not running on {}", self.name))?;
        Ok(Pid::from_raw(pid.cast_signed()))
    }

    pub(crate) fn signal(&self, name: &str, signal: Signal) -> Result<()> {
        kill(self.pid(name)?, signal).with_context(|| format!("{signal} to {name}"))
    }

    /// Waits until a program has exited.
    pub(crate) async fn wait(&self, name: &'static str, limit: Duration) -> Result<()> {
        let child = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.remove(name)
        };
        let Some(mut child) = child else {
            return Ok(());
        };
        let ended = tokio::time::timeout(limit, child.wait()).await;
        ended.with_context(|| format!("{name} does not exit on {}", self.name))??;
        Ok(())
    }

    pub(crate) async fn kill(&self, name: &'static str) -> Result<()> {
        self.signal(name, Signal::SIGKILL)?;
        self.wait(name, Duration::from_secs(10)).await
    }

    /// The ids of all processes of this machine whose name has a prefix.
    pub(crate) async fn pids(&self, name: &str) -> Result<Vec<Pid>> {
        let output = run("ip", &["netns", "pids", &self.namespace]).await?;
        let pids = output.split_whitespace().filter_map(|pid| pid.parse().ok());
        let is_named = |pid: &i32| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            comm.is_ok_and(|comm| comm.starts_with(name))
        };
        Ok(pids.filter(is_named).map(Pid::from_raw).collect())
    }

    /// Sends a signal to all processes whose name has a prefix.
    pub(crate) async fn signal_all(&self, name: &str, signal: Signal) -> Result<()> {
        for pid in self.pids(name).await? {
            // The process may have exited since it was listed.
            let _sent = kill(pid, signal);
        }
        Ok(())
    }

    /// Kills all processes of this machine.
    pub(crate) async fn kill_all(&self) -> Result<()> {
        for _ in 0..50 {
            let pids = self.pids("").await?;
            let mut left = false;
            for pid in pids {
                left |= !is_zombie(pid);
                let _sent = kill(pid, Signal::SIGKILL);
            }
            if !left {
                let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                running.clear();
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(anyhow!("not all processes on {} exit", self.name).context(MachineFailure))
    }

    /// The last lines of a program's log.
    pub(crate) fn log_tail(&self, name: &str) -> String {
        let path = self.folder.join(name).with_extension("log");
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(4).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("{} of {}:\n{}\n", name, self.name, lines.join("\n"))
    }
}

fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z")
}
