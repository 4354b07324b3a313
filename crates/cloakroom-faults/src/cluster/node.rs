//! A machine with a vault node, and a local HAProxy that routes to the primary.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::Signal;
use tokio::process::Command;

use super::machine::Machine;
use super::probe;

const DRAIN_TIMEOUT: Duration = Duration::from_secs(40);

pub(crate) struct Node {
    pub(crate) machine: Machine,
}

impl Node {
    pub(crate) fn config_folder(&self) -> PathBuf {
        self.machine.folder.join("config")
    }

    pub(crate) fn start_proxy(&self) -> Result<()> {
        let mut haproxy = self.machine.command("haproxy", false);
        haproxy.arg("-db").arg("-f");
        haproxy.arg(self.config_folder().join("haproxy-database.cfg"));
        self.machine.spawn("haproxy", haproxy)
    }

    pub(crate) async fn restart_proxy(&self) -> Result<()> {
        self.machine.kill("haproxy").await?;
        self.start_proxy()
    }

    /// The cloakroom command with the configuration of this node.
    pub(crate) fn program(&self, binary: &Path) -> Command {
        let mut command = self.machine.command(&binary.display().to_string(), false);
        let config = self.config_folder().join("cloakroom.toml");
        command.env("CLOAKROOM_CONFIG", config);
        command
    }

    pub(crate) fn start(&self, binary: &Path) -> Result<()> {
        let mut command = self.program(binary);
        command.arg("serve");
        self.machine.spawn("cloakroom", command)
    }

    /// Starts the node with a clock offset such as `+3h`.
    pub(crate) fn start_with_clock_offset(&self, offset: &str, binary: &Path) -> Result<()> {
        let mut command = self.program(binary);
        // Not with the program `faketime`, which would receive the signals for the node.
        command
            .env("LD_PRELOAD", fake_clock()?)
            .env("FAKETIME", offset);
        command
            .arg("serve")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        self.machine.spawn("cloakroom", command)
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let address = format!("{}:9091", self.machine.address);
        let response = probe::get(&address, "/readyz").await;
        response.is_ok_and(|(status, _)| status == 200)
    }

    pub(crate) async fn wait_until_ready(&self) -> Result<()> {
        let started_at = Instant::now();
        while !self.is_ready().await {
            if started_at.elapsed() > Duration::from_secs(60) {
                bail!("{}", self.machine.log_tail("cloakroom"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Stops the node gracefully.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.machine.signal("cloakroom", Signal::SIGTERM)?;
        self.machine.wait("cloakroom", DRAIN_TIMEOUT).await
    }
}

/// The library of Debian's package `libfaketime`; its folder depends on the architecture.
fn fake_clock() -> Result<PathBuf> {
    for folder in std::fs::read_dir("/usr/lib")? {
        let library = folder?.path().join("faketime/libfaketimeMT.so.1");
        if library.exists() {
            return Ok(library);
        }
    }
    bail!("libfaketime is missing; on Debian: apt-get install faketime")
}
