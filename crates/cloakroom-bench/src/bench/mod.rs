//! Measures a node over HTTP against PostgreSQL alone, in the same run.

mod command;
mod database;
mod engine;
mod hello;
mod load;
mod machine;
mod node;
mod nodes;
mod pair;
mod perf;
mod probe;
mod processes;
mod programs;
mod proxied;
mod report;
mod server;
mod stage;
mod turns;
mod vault;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cloakroom_devtools::{packages, workspace};

use self::load::Operation;
use self::perf::Perf;
use self::programs::Programs;
use self::proxied::Slow;
use self::report::Results;
use self::stage::Stage;
use self::turns::Turns;
use crate::runtime;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A few seconds only: a smoke test, not a measurement
    #[arg(long)]
    short: bool,
    /// Duration of each measurement in seconds, after the warm-up [default: 10]
    #[arg(long, conflicts_with = "short")]
    seconds: Option<u32>,
    /// Minimum number of tokens in the vault and in the baseline [default: 50000]
    #[arg(long, conflicts_with = "short")]
    tokens: Option<u64>,
    /// Numbers of concurrent connections [default: 1,16,64; with --short, 1,16; with --nodes, 64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    connections: Vec<u32>,
    /// Operations to measure [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    operations: Vec<Operation>,
    /// Do not measure the cost of each protection
    #[arg(long)]
    no_pairs: bool,
    /// Measure these numbers of nodes behind HAProxy, and nothing else
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["perf", "svg"])]
    nodes: Vec<usize>,
    /// Measure proxied requests against a bare reverse proxy, and nothing else
    #[arg(long, conflicts_with_all = ["nodes", "perf", "svg"])]
    proxy: bool,
    /// Measure operations while this many proxied requests wait for a slow destination, and nothing else
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["nodes", "perf", "svg", "proxy"])]
    slow_destinations: Option<u32>,
    /// Also write a CPU profile of the node per operation
    #[arg(long, value_name = "FOLDER")]
    perf: Option<PathBuf>,
    /// Record call graphs, as in `perf record --call-graph`: dwarf,8192 for example
    #[arg(long, value_name = "HOW", requires = "perf")]
    call_graph: Option<String>,
    /// Cargo profile of the measured programs [default: dist; with --short, release]
    #[arg(long)]
    profile: Option<String>,
    /// With --short: run what `cargo build --workspace --bins --examples` has built
    #[arg(long, requires = "short", conflicts_with_all = ["profile", "binary", "hello", "nodes"])]
    built: bool,
    /// Measure this program instead of building a node
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Compare with this program instead of building examples/hello.rs
    #[arg(long, value_name = "FILE")]
    hello: Option<PathBuf>,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// File of the plot [default: target/bench.svg]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Operations, connections and durations of the measurements.
struct Plan {
    warm_up_s: u32,
    measured_s: u32,
    connections: Vec<u32>,
    operations: Vec<Operation>,
    tokens: u64,
}

impl Plan {
    fn new(arguments: &Arguments) -> Self {
        let usual: &[u32] = match (arguments.nodes.is_empty(), arguments.short) {
            (false, _) => &[64],
            (true, false) => &[1, 16, 64],
            (true, true) => &[1, 16],
        };
        let all = [
            Operation::Create,
            Operation::GetMasked,
            Operation::GetRevealed,
        ];
        let (warm_up_s, measured_s, tokens) = if arguments.short {
            (1, 2, 2_000)
        } else {
            let seconds = arguments.seconds.unwrap_or(10);
            (seconds.min(3), seconds, arguments.tokens.unwrap_or(50_000))
        };
        Self {
            warm_up_s,
            measured_s,
            connections: or_default(&arguments.connections, usual),
            operations: or_default(&arguments.operations, &all),
            tokens,
        }
    }

    fn connections_max(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }
}

fn or_default<T: Clone>(given: &[T], usual: &[T]) -> Vec<T> {
    match given {
        [] => usual.to_vec(),
        _ => given.to_vec(),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    packages::require(&[("wrk", "wrk")])?;
    if arguments.perf.is_some() {
        packages::require(&[("perf", "linux-perf")])?;
    }
    if !arguments.nodes.is_empty() {
        packages::require(&[("haproxy", "haproxy"), ("redis-cli", "redis-tools")])?;
    }
    runtime::run(measure(arguments))
}

#[derive(clap::Args)]
pub(crate) struct ExerciseArguments {
    /// The program that serves
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Duration of each kind of request at each number of connections
    #[arg(long, default_value_t = 8)]
    seconds: u32,
}

/// Sends every kind of request to a node: `cargo xtask dist` profiles it meanwhile.
pub(crate) fn exercise(arguments: &ExerciseArguments) -> Result<()> {
    let seconds = arguments.seconds;
    let plan = Plan {
        warm_up_s: 0,
        measured_s: seconds,
        connections: vec![1, 64],
        operations: vec![
            Operation::Create,
            Operation::CreateOnce,
            Operation::GetMasked,
            Operation::GetRevealed,
        ],
        tokens: 10_000,
    };
    packages::require(&[("wrk", "wrk")])?;
    runtime::run(async {
        let stage = Stage::start(plan, &arguments.binary).await?;
        for &connections in &stage.plan.connections {
            for &operation in &stage.plan.operations {
                stage::announce(operation.name(), connections, "node");
                let outcome = stage.load.run(operation, connections, seconds).await?;
                println!("{:>9.0}/s", outcome.requests_per_s());
            }
        }
        stage.stop().await
    })
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let programs = Programs::of(arguments).await?;
    if !arguments.short {
        machine::warn_if_busy("before the measurements").await?;
    }
    let stage = Stage::start(Plan::new(arguments), &programs.node).await?;
    let result = match (&programs.hello, &programs.proxied) {
        (Some(hello), _) => one_node(arguments, &stage, hello).await,
        (None, Some(proxied)) => through_proxies(arguments, &stage, proxied).await,
        (None, None) => several_nodes(arguments, &stage).await,
    };
    result.with_context(|| stage.node.log_tail())?;
    stage.stop().await?;
    if !arguments.short {
        machine::warn_if_busy("after the measurements").await?;
    }
    Ok(())
}

async fn one_node(arguments: &Arguments, stage: &Stage, hello: &Path) -> Result<()> {
    let turns = Turns::new(stage, hello).await?;
    let mut results = turns.take().await?;
    if !arguments.no_pairs {
        results.compared = turns.compare_all().await?;
    }
    print(arguments, &results)?;
    if let Some(folder) = &arguments.perf {
        let perf = Perf::new(folder, arguments.call_graph.as_deref())?;
        for &operation in &stage.plan.operations {
            perf.record(stage, operation).await?;
        }
    }
    Ok(())
}

fn print(arguments: &Arguments, results: &Results) -> Result<()> {
    let json = report::json(results)?;
    report::check(&json)?;
    for table in results.tables() {
        println!("\n{table}");
    }
    if let Some(file) = &arguments.json {
        write(file, &json)?;
    }
    let usual = || workspace::root().join("target/bench.svg");
    let svg = arguments.svg.clone().unwrap_or_else(usual);
    write(&svg, &report::chart(&results.operations).svg())
}

async fn several_nodes(arguments: &Arguments, stage: &Stage) -> Result<()> {
    let rows = nodes::measure(stage, &arguments.nodes).await?;
    let json = nodes::json(&rows)?;
    for table in nodes::tables(&rows) {
        println!("\n{table}");
    }
    if let Some(file) = &arguments.json {
        write(file, &json)?;
    }
    Ok(())
}

async fn through_proxies(
    arguments: &Arguments,
    stage: &Stage,
    programs: &proxied::Programs,
) -> Result<()> {
    let (table, json) = match arguments.slow_destinations {
        Some(held) => {
            let rows = proxied::hold(stage, programs, held).await?;
            (Slow::table_of(&rows), serde_json::to_string_pretty(&rows)?)
        }
        None => {
            let rows = proxied::measure(stage, programs).await?;
            let json = serde_json::to_string_pretty(&rows)?;
            (proxied::table_of(&rows), json)
        }
    };
    println!("\n{table}");
    match &arguments.json {
        Some(file) => write(file, &(json + "\n")),
        None => Ok(()),
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, text).with_context(|| file.display().to_string())?;
    println!("bench: wrote {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests;
