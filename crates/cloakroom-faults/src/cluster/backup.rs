//! Database backups, and vaults restored from them beside the cluster.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use tokio::process::Command;

use super::command::capture;
use super::files::write_private;
use super::provision::database_url;
use super::vault::NODE_ROLE;
use super::{Cluster, Database, Node, probe};

/// Ports that the cluster does not use.
const DATABASE_PORT: u16 = 5433;
const API_PORT: u16 = 8444;
const ADMIN_PORT: u16 = 9190;

const SERVER: &str = "restored-postgres";
const NODE: &str = "restored-node";
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A base backup of the database.
pub(crate) struct Backup<'a> {
    cluster: &'a Cluster,
    /// The database machine that has the backup.
    database: &'a Database,
    folder: PathBuf,
}

/// A database restored from a backup, and the configuration of a node that uses it.
pub(crate) struct RestoredVault<'a> {
    backup: Backup<'a>,
    node: &'a Node,
    url_file: PathBuf,
}

impl Cluster {
    /// Creates a base backup of the running primary.
    pub(crate) async fn back_up(&self) -> Result<Backup<'_>> {
        let database = self.wait_for_primary().await?;
        let folder = database.machine.folder.join("backup");
        let program = "/usr/lib/postgresql/15/bin/pg_basebackup";
        let mut copy = database.machine.command(program, true);
        copy.args(["--checkpoint=fast", "--username=replicator"]);
        copy.arg(format!("--host={}", database.state_folder().display()));
        copy.arg(format!("--pgdata={}", folder.display()));
        copy.env("PGPASSWORD", &self.secrets.replication);
        capture(copy).await?;
        Ok(Backup {
            cluster: self,
            database,
            folder,
        })
    }
}

impl<'a> Backup<'a> {
    /// Starts the database from the backup, without standbys.
    pub(crate) async fn restore(self) -> Result<RestoredVault<'a>> {
        let machine = &self.database.machine;
        let mut server = machine.command("/usr/lib/postgresql/15/bin/postgres", true);
        server.arg("-D").arg(&self.folder);
        server.args(["-c", &format!("port={DATABASE_PORT}")]);
        server.args(["-c", "synchronous_standby_names="]);
        machine.spawn(SERVER, server)?;

        let node = &self.cluster.nodes[0];
        let password = &self.cluster.secrets.node;
        let url = database_url(NODE_ROLE, password, &machine.address, DATABASE_PORT);
        let url_file = node.config_folder().join("restored.url");
        write_private(&url_file, &url)?;
        let restored = RestoredVault {
            backup: self,
            node,
            url_file,
        };
        restored.wait_for_database().await?;
        Ok(restored)
    }
}

impl RestoredVault<'_> {
    async fn wait_for_database(&self) -> Result<()> {
        let database = self.backup.database;
        let started_at = Instant::now();
        loop {
            let mut query = database.psql("cloakroom", "select 1");
            query.arg(format!("--port={DATABASE_PORT}"));
            match capture(query).await {
                Ok(_) => return Ok(()),
                Err(error) if started_at.elapsed() > START_TIMEOUT => {
                    return Err(error).with_context(|| database.machine.log_tail(SERVER));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    fn program(&self) -> Command {
        let mut program = self.node.program(&self.backup.cluster.binary);
        let address = &self.node.machine.address;
        for name in ["URL_FILE", "REPLICA_URL_FILE"] {
            program.env(format!("CLOAKROOM__DATABASE__{name}"), &self.url_file);
        }
        program
            .env("CLOAKROOM__HTTP__LISTEN", format!("{address}:{API_PORT}"))
            .env(
                "CLOAKROOM__ADMIN__LISTEN",
                format!("{address}:{ADMIN_PORT}"),
            );
        program
    }

    /// Runs a cloakroom command on the restored database.
    pub(crate) async fn vault(&self, arguments: &[&str]) -> Result<String> {
        let mut program = self.program();
        program.args(arguments);
        capture(program).await
    }

    pub(crate) async fn start_node(&self) -> Result<()> {
        let machine = &self.node.machine;
        let mut program = self.program();
        program.arg("serve");
        machine.spawn(NODE, program)?;
        let address = format!("{}:{ADMIN_PORT}", machine.address);
        let started_at = Instant::now();
        loop {
            match probe::get(&address, "/readyz").await {
                Ok((200, _)) => return Ok(()),
                _ if started_at.elapsed() > START_TIMEOUT => bail!("{}", machine.log_tail(NODE)),
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    pub(crate) fn api_url(&self) -> String {
        format!("https://{}:{API_PORT}", self.node.machine.address)
    }

    /// Stops the node and the database, and deletes the backup.
    pub(crate) async fn remove(self) -> Result<()> {
        self.node.machine.kill(NODE).await?;
        let machine = &self.backup.database.machine;
        machine.signal(SERVER, Signal::SIGQUIT)?;
        machine.wait(SERVER, Duration::from_secs(30)).await?;
        Ok(std::fs::remove_dir_all(&self.backup.folder)?)
    }
}
