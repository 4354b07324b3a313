//! A database machine with etcd, Patroni and PostgreSQL on its own disk.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use tokio::process::Command;

use super::command::capture;
use super::disk::Disk;
use super::machine::Machine;
use super::{files, probe};

pub(crate) struct Database {
    pub(crate) machine: Machine,
    pub(crate) disk: Disk,
}

impl Database {
    pub(crate) fn etcd_folder(&self) -> PathBuf {
        self.disk.path().join("etcd")
    }

    pub(crate) fn data_folder(&self) -> PathBuf {
        self.disk.path().join("data")
    }

    /// The folder of Unix sockets.
    pub(crate) fn state_folder(&self) -> PathBuf {
        self.machine.folder.join("state")
    }

    pub(crate) fn config_folder(&self) -> PathBuf {
        self.machine.folder.join("config")
    }

    /// Creates the folders of etcd and PostgreSQL.
    pub(crate) fn prepare(&self) -> Result<()> {
        std::fs::create_dir(self.etcd_folder())?;
        std::fs::create_dir(self.state_folder())?;
        for folder in [
            self.disk.path().to_owned(),
            self.etcd_folder(),
            self.state_folder(),
            self.config_folder(),
            self.machine.folder.clone(),
        ] {
            files::chown_to_database_user(&folder)?;
        }
        Ok(())
    }

    pub(crate) fn start(&self) -> Result<()> {
        self.start_etcd()?;
        self.start_patroni()
    }

    pub(crate) fn start_etcd(&self) -> Result<()> {
        let mut etcd = self.machine.command("etcd", true);
        let settings = std::fs::read_to_string(self.config_folder().join("etcd.env"))?;
        let settings = settings.lines().filter(|line| !line.starts_with('#'));
        etcd.envs(settings.filter_map(|line| line.split_once('=')));
        self.machine.spawn("etcd", etcd)
    }

    pub(crate) fn start_patroni(&self) -> Result<()> {
        let mut patroni = self.machine.command("/usr/bin/patroni", true);
        patroni.arg(self.config_folder().join("patroni.yml"));
        self.machine.spawn("patroni", patroni)
    }

    /// Restarts etcd and Patroni if they have exited.
    pub(crate) async fn restart_stopped(&self) -> Result<()> {
        if self.machine.pids("etcd").await?.is_empty() {
            self.start_etcd()?;
        }
        if self.machine.pids("patroni").await?.is_empty() {
            self.start_patroni()?;
        }
        Ok(())
    }

    /// Switches WAL segments until the disk is full.
    pub(crate) async fn fill_wal(&self) {
        for _ in 0..60 {
            let switch = "select pg_logical_emit_message(false, 'faults', repeat('x', 1000000)); \
                          select pg_switch_wal()";
            let switched = self.sql("postgres", switch);
            match tokio::time::timeout(Duration::from_secs(3), switched).await {
                Ok(Ok(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
                // PostgreSQL has stopped, as expected.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Kills Patroni and PostgreSQL; etcd keeps running.
    pub(crate) async fn kill_postgres(&self) -> Result<()> {
        self.machine.kill("patroni").await?;
        self.machine.signal_all("postgres", Signal::SIGKILL).await
    }

    pub(crate) async fn postmaster(&self) -> Result<nix::unistd::Pid> {
        let file = self.data_folder().join("postmaster.pid");
        let text = std::fs::read_to_string(&file).context("PostgreSQL is not running")?;
        let pid = text
            .lines()
            .next()
            .context("postmaster.pid has no process id")?
            .trim()
            .parse()?;
        Ok(nix::unistd::Pid::from_raw(pid))
    }

    pub(crate) async fn is_primary(&self) -> bool {
        self.health_check("/primary").await
    }

    pub(crate) async fn is_standby(&self) -> bool {
        self.health_check("/replica").await
    }

    async fn health_check(&self, path: &str) -> bool {
        let address = format!("{}:8008", self.machine.address);
        let response = probe::get(&address, path).await;
        response.is_ok_and(|(status, _)| status == 200)
    }

    /// Runs SQL as superuser on this machine. Returns one line per row.
    pub(crate) async fn sql(&self, database: &str, statement: &str) -> Result<String> {
        let query = capture(self.psql(database, statement));
        let output = tokio::time::timeout(Duration::from_secs(120), query).await;
        Ok(output.context("SQL timed out")??.trim().to_owned())
    }

    pub(crate) fn psql(&self, database: &str, statement: &str) -> Command {
        let mut psql = self
            .machine
            .command("/usr/lib/postgresql/15/bin/psql", true);
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--set=ON_ERROR_STOP=1", "--username=postgres"]);
        psql.arg(format!("--host={}", self.state_folder().display()));
        psql.arg(format!("--dbname={database}"));
        psql.arg(format!("--command={statement}"));
        psql.kill_on_drop(true);
        psql
    }

    /// Changes the dynamic configuration of Patroni.
    pub(crate) async fn configure(&self, settings: &[&str]) -> Result<()> {
        let mut patronictl = self.machine.command("/usr/bin/patronictl", true);
        patronictl
            .arg("-c")
            .arg(self.config_folder().join("patroni.yml"));
        patronictl.args(["edit-config", "cloakroom", "--force", "--quiet"]);
        for setting in settings {
            patronictl.args(["--set", setting]);
        }
        capture(patronictl).await?;
        Ok(())
    }
}
