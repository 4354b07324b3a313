//! Measuring one node over HTTP against the bare engine below it, in the same run.

mod command;
mod database;
mod engine;
mod load;
mod machine;
mod node;
mod pair;
mod probe;
mod report;
mod vault;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use cloakroom_scratch::{Postgres, PostgresOptions, Redis, RedisOptions};
use tokio::signal::unix::{SignalKind, signal};

use self::database::Database;
use self::engine::{Engine, Statement};
use self::load::{Load, Operation, Outcome};
use self::node::Node;
use self::pair::{PAIRS, Pair};
use self::report::{Compared, Row};
use self::vault::Vault;
use crate::{packages, workspace};

const PROFILE: &str = "dist";
const PROFILE_SHORT: &str = "release";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A few seconds only: shows that it runs, not how fast
    #[arg(long)]
    short: bool,
    /// How long each measurement lasts, after its warm-up [default: 10]
    #[arg(long, conflicts_with = "short")]
    seconds: Option<u32>,
    /// How many tokens the vault and the engine hold at least [default: 50000]
    #[arg(long, conflicts_with = "short")]
    tokens: Option<u64>,
    /// The cargo profile of the node [default: dist; with --short, release]
    #[arg(long)]
    profile: Option<String>,
    /// Measure this program instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    binary: Option<PathBuf>,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the plot goes [default: target/bench.svg]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What is measured, and for how long.
struct Plan {
    warm_up_s: u32,
    measured_s: u32,
    connections: &'static [u32],
    tokens: u64,
}

impl Plan {
    fn new(arguments: &Arguments) -> Self {
        if arguments.short {
            return Self {
                warm_up_s: 1,
                measured_s: 2,
                connections: &[1, 16],
                tokens: 2_000,
            };
        }
        Self {
            warm_up_s: 3,
            measured_s: arguments.seconds.unwrap_or(10),
            connections: &[1, 16, 64],
            tokens: arguments.tokens.unwrap_or(50_000),
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // The losing future is dropped, and with it every process that it holds.
        tokio::select! {
            result = measure(&arguments) => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let plan = Plan::new(arguments);
    if !workspace::has_program("wrk") {
        packages::install(&["wrk"])?;
    }
    let binary = match &arguments.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(arguments).await?,
    };

    if !arguments.short {
        machine::warn_if_busy("before the measurements").await?;
    }
    let bench = Bench::start(plan, &binary).await?;
    let rows = match bench.rows().await {
        Ok(rows) => rows,
        Err(error) => return Err(error.context(bench.node.log_tail())),
    };
    let mut compared = Vec::new();
    for pair in PAIRS {
        compared.push((pair, bench.compare(pair).await?));
    }
    bench.stop().await?;
    if !arguments.short {
        machine::warn_if_busy("after the measurements").await?;
    }

    let json = report::json(&rows)?;
    report::check(&json, rows.len())?;
    println!("\n{}", report::table(&rows));
    for (pair, measured) in &compared {
        println!("\n{}", report::compared(pair, measured));
    }
    if let Some(file) = &arguments.json {
        write(file, &json)?;
    }
    let svg = arguments.svg.clone();
    write(
        &svg.unwrap_or_else(|| workspace::root().join("target/bench.svg")),
        &report::chart(&rows).svg(),
    )
}

async fn build(arguments: &Arguments) -> Result<PathBuf> {
    let usual = if arguments.short {
        PROFILE_SHORT
    } else {
        PROFILE
    };
    let profile = arguments.profile.as_deref().unwrap_or(usual);
    println!("bench: building the node, profile {profile}");
    vault::build(profile).await
}

/// Everything that runs during the measurements; dropped in this order.
struct Bench {
    plan: Plan,
    load: Load,
    node: Node,
    vault: Vault,
    engine: Engine,
    kept: Database,
    postgres: Postgres,
    redis: Redis,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Starts the servers and fills both databases with equally many rows.
    async fn start(plan: Plan, binary: &Path) -> Result<Self> {
        println!("bench: starting PostgreSQL, Redis and one node");
        let folder = tempfile::tempdir()?;
        let redis = Redis::start(RedisOptions::default())?;
        let postgres = Postgres::start(PostgresOptions::default())?;
        postgres.create_database("engine")?;
        let kept = Database::of(&postgres, "cloakroom")?;
        let bare = Database::of(&postgres, "engine")?;
        kept.require_durability().await?;

        vault::migrate(binary, &postgres.url_of("engine")).await?;
        let vault = Vault::create(binary, &postgres.url(), folder.path()).await?;
        let node = Node::start(&vault, folder.path()).await?;
        let mut load = Load::new(&node, vault.keys.clone(), folder.path())?;

        println!("bench: creating {} tokens or a few more", plan.tokens);
        let rows = fill(&load, &kept, plan.tokens).await?;
        load.choose_from(&kept.ask("select token_id from token").await?)?;
        probe::views_differ(&load).await?;
        let engine = Engine::new(bare, kept.shape().await?, rows, folder.path()).await?;
        println!("bench: {}", engine.describe());
        Ok(Self {
            plan,
            load,
            node,
            vault,
            engine,
            kept,
            postgres,
            redis,
            folder,
        })
    }

    async fn rows(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for &connections in self.plan.connections {
            if !rows.is_empty() {
                self.kept.forget_newer_rows().await?;
                self.engine.database.forget_newer_rows().await?;
            }
            rows.extend(self.at(connections).await?);
        }
        rows.sort_by_key(|row| row.operation);
        Ok(rows)
    }

    /// Engine and node take turns, so that whatever else the machine does meets both.
    async fn at(&self, connections: u32) -> Result<[Row; 3]> {
        let masked = self.node_at(Operation::GetMasked, connections).await?;
        let finds = self.engine_at(Statement::Find, connections).await?;
        let revealed = self.node_at(Operation::GetRevealed, connections).await?;
        let inserts = self.engine_at(Statement::Insert, connections).await?;
        let created = self.node_at(Operation::Create, connections).await?;
        Ok([
            Row::new(Operation::GetMasked, connections, &masked, finds),
            Row::new(Operation::GetRevealed, connections, &revealed, finds),
            Row::new(Operation::Create, connections, &created, inserts),
        ])
    }

    /// What something costs: the same requests to a node with it and to one without, in turn.
    async fn compare(&self, pair: &Pair) -> Result<Vec<Compared>> {
        let [with, without] =
            [("with", pair.with), ("without", pair.without)].map(|(name, settings)| {
                let log = self
                    .folder
                    .path()
                    .join(format!("{} {name}.log", pair.title));
                let settings = pair::resolved(settings, &self.redis.url(), self.folder.path());
                async move { Node::start_with(&self.vault, &log, &settings?).await }
            });
        let (with, without) = (with.await?, without.await?);
        let mut measured = Vec::new();
        for &(operation, compared_with) in pair.operations {
            for &connections in self.plan.connections {
                measured.push(Compared {
                    operation,
                    connections,
                    with_per_s: self
                        .rate_of(&with, pair.names.0, operation, connections)
                        .await?,
                    without_per_s: self
                        .rate_of(&without, pair.names.1, compared_with, connections)
                        .await?,
                });
            }
        }
        with.stop().await?;
        without.stop().await?;
        Ok(measured)
    }

    /// Requests per second of a node other than the one that is compared with the engine.
    async fn rate_of(
        &self,
        node: &Node,
        name: &str,
        operation: Operation,
        connections: u32,
    ) -> Result<f64> {
        announce(operation.name(), connections, name);
        let load = self.load.sent_to(node);
        load.run(operation, connections, self.plan.warm_up_s)
            .await?;
        let outcome = load
            .run(operation, connections, self.plan.measured_s)
            .await?;
        println!("{:>9.0}/s", outcome.requests_per_s());
        Ok(outcome.requests_per_s())
    }

    async fn node_at(&self, operation: Operation, connections: u32) -> Result<Outcome> {
        announce(operation.name(), connections, "node");
        self.kept.checkpoint().await?;
        let load = &self.load;
        load.run(operation, connections, self.plan.warm_up_s)
            .await?;
        let rows_before = self.kept.count().await?;
        let cpu_before = self.node.cpu_time()?;
        let mut outcome = load
            .run(operation, connections, self.plan.measured_s)
            .await?;
        outcome.cpu_time = self.node.cpu_time()?.saturating_sub(cpu_before);
        let rows_made = self.kept.count().await? - rows_before;
        ensure!(
            operation != Operation::Create || rows_made >= outcome.requests,
            "{} creates were answered, but there are only {rows_made} more tokens",
            outcome.requests,
        );
        println!("{:>9.0}/s", outcome.requests_per_s());
        Ok(outcome)
    }

    async fn engine_at(&self, statement: Statement, clients: u32) -> Result<f64> {
        announce(statement.name(), clients, "engine");
        self.engine.database.checkpoint().await?;
        self.engine
            .rate(statement, clients, self.plan.warm_up_s)
            .await?;
        let rate = self
            .engine
            .rate(statement, clients, self.plan.measured_s)
            .await?;
        println!("{rate:>9.0}/s");
        Ok(rate)
    }

    async fn stop(self) -> Result<()> {
        self.node.stop().await?;
        self.redis.stop()?;
        Ok(self.postgres.stop()?)
    }
}

/// Creates tokens over HTTP until there are `wanted`; says how many there are then.
async fn fill(load: &Load, kept: &Database, wanted: u64) -> Result<u64> {
    const CONNECTIONS: u32 = 16;
    let mut rows = 0;
    while rows < wanted {
        load.run(Operation::Create, CONNECTIONS, 1).await?;
        let now = kept.count().await?;
        ensure!(now > rows, "no tokens are being created");
        rows = now;
    }
    kept.remember_newest_row().await?;
    Ok(rows)
}

fn announce(what: &str, connections: u32, who: &str) {
    print!("bench: {what:13} connections: {connections:<3} {who:10}");
    // A line without an end is shown late, at worst.
    let _flushed = std::io::stdout().flush();
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, text).with_context(|| file.display().to_string())?;
    println!("bench: wrote {}", file.display());
    Ok(())
}
