//! The setup of every measurement: servers, a filled vault, a node, and the load generator.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, ensure};
use cloakroom_devtools::servers;
use cloakroom_scratch::{Postgres, PostgresOptions, Redis, RedisOptions};

use super::database::Database;
use super::load::{Load, Operation, Outcome};
use super::pair::{self, EVERYTHING, Setting};
use super::processes::{self, CpuShares, Processes};
use super::server::Server;
use super::vault::Vault;
use super::{Plan, node, vault};

/// All processes of the measurements; dropped in this order.
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) load: Load,
    pub(super) node: Server,
    pub(super) vault: Vault,
    pub(super) database: Database,
    pub(super) postgres: Postgres,
    pub(super) redis: Redis,
    pub(super) folder: tempfile::TempDir,
    /// Number of tokens before the measurements.
    pub(super) tokens: u64,
}

/// Results of one run of wrk, and its cost.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) warm_up: Outcome,
    pub(super) outcome: Outcome,
    pub(super) cpu: CpuShares,
    /// Of all servers together.
    pub(super) memory_mb: f64,
}

impl Stage {
    pub(super) async fn start(plan: Plan, program: &Path) -> Result<Self> {
        println!("bench: starting PostgreSQL, Redis and one node");
        let folder = tempfile::tempdir()?;
        let redis = servers::start_redis(RedisOptions::default())?;
        let postgres = servers::start_postgres(PostgresOptions::default())?;
        let database = Database::of(&postgres, "cloakroom")?;
        database.require_durability().await?;

        let vault = Vault::create(program, &postgres.url(), folder.path()).await?;
        let settings = pair::resolved(&[EVERYTHING], &redis.url(), folder.path())?;
        let node = node::start(&vault, &folder.path().join("node.log"), &settings).await?;
        let mut load = Load::new(&node.address, vault.keys.clone(), folder.path())?;

        println!("bench: creating {} tokens or a few more", plan.tokens);
        let tokens = fill(&load, &database, plan.tokens).await?;
        load.choose_from(&database.query("select token_id from token").await?)?;
        Ok(Self {
            plan,
            load,
            node,
            vault,
            database,
            postgres,
            redis,
            folder,
            tokens,
        })
    }

    /// Another node of the same vault.
    pub(super) async fn start_node(&self, name: &str, settings: &[&[Setting]]) -> Result<Server> {
        let log = self.folder.path().join(name).with_extension("log");
        let settings = pair::resolved(settings, &self.redis.url(), self.folder.path())?;
        node::start(&self.vault, &log, &settings).await
    }

    /// A second database with the same tables and indexes.
    pub(super) async fn empty_database(&self, name: &str) -> Result<Database> {
        let url = self.postgres.create_database(name)?;
        vault::migrate(self.vault.program(), &url).await?;
        Database::of(&self.postgres, name)
    }

    /// The processes whose CPU times are read, with these servers.
    pub(super) fn processes(&self, servers: &[&Server]) -> Processes {
        Processes {
            proxy: None,
            servers: servers.iter().map(|server| server.pid).collect(),
            postgres: self.postgres.pid(),
            redis: self.redis.pid(),
        }
    }

    /// Warms up, then measures.
    pub(super) async fn measure(
        &self,
        load: &Load,
        processes: &Processes,
        operation: Operation,
        connections: u32,
    ) -> Result<Measured> {
        let warm_up = load
            .run(operation, connections, self.plan.warm_up_s)
            .await?;
        let rows_before = self.database.count().await?;
        let cpu_before = processes.cpu_times()?;
        let outcome = load
            .run(operation, connections, self.plan.measured_s)
            .await?;
        let cpu = processes.cpu_times()? - cpu_before;
        let rows_made = self.database.count().await? - rows_before;
        ensure!(
            operation != Operation::Create || rows_made >= outcome.requests,
            "{} creates succeeded, but there are only {rows_made} new tokens",
            outcome.requests,
        );
        println!("{:>9.0}/s", outcome.requests_per_s());
        let memory = processes
            .servers
            .iter()
            .map(|pid| processes::memory_mb(*pid));
        Ok(Measured {
            warm_up,
            outcome,
            cpu: cpu.shared_by(outcome.requests),
            memory_mb: memory.sum::<Result<f64>>()?,
        })
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.node.stop().await?;
        self.redis.stop()?;
        Ok(self.postgres.stop()?)
    }
}

/// Creates tokens over HTTP until there are at least `wanted`. Returns their number.
async fn fill(load: &Load, database: &Database, wanted: u64) -> Result<u64> {
    const CONNECTIONS: u32 = 16;
    let mut rows = 0;
    while rows < wanted {
        load.run(Operation::Create, CONNECTIONS, 1).await?;
        let now = database.count().await?;
        ensure!(now > rows, "no tokens are being created");
        rows = now;
    }
    database.store_newest_row().await?;
    Ok(rows)
}

pub(super) fn announce(what: &str, connections: u32, who: &str) {
    print!("bench: {what:13} connections: {connections:<3} {who:10}");
    // Failing to flush only delays the output.
    let _flushed = std::io::stdout().flush();
}
