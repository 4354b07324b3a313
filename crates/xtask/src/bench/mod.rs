//! Measuring one node over HTTP against the bare engine below it, in the same run.

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
mod report;
mod server;
mod stage;
mod turns;
mod vault;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use self::load::Operation;
use self::perf::Perf;
use self::programs::Programs;
use self::report::Results;
use self::stage::Stage;
use self::turns::Turns;
use crate::workspace;

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
    /// How many connections ask at once [default: 1,16,64; with --short, 1,16; with --nodes, 64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    connections: Vec<u32>,
    /// What is asked for [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    operations: Vec<Operation>,
    /// Leave out what each protection costs
    #[arg(long)]
    no_pairs: bool,
    /// Measure so many nodes behind HAProxy, one number after the other, and nothing else
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["perf", "svg"])]
    nodes: Vec<usize>,
    /// Also write where the node spends its time, a file per operation
    #[arg(long, value_name = "FOLDER")]
    perf: Option<PathBuf>,
    /// With callers, as `perf record --call-graph` has it: dwarf,8192 for example
    #[arg(long, value_name = "HOW", requires = "perf")]
    call_graph: Option<String>,
    /// The cargo profile of what is measured [default: dist; with --short, release]
    #[arg(long)]
    profile: Option<String>,
    /// With --short: run what `cargo build --workspace --all-targets` has made
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
    /// Where the plot goes [default: target/bench.svg]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What is measured, and for how long.
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
            connections: or(&arguments.connections, usual),
            operations: or(&arguments.operations, &all),
            tokens,
        }
    }

    fn connections_max(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }
}

fn or<T: Clone>(given: &[T], usual: &[T]) -> Vec<T> {
    match given {
        [] => usual.to_vec(),
        _ => given.to_vec(),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    until_stopped(measure(&arguments))
}

/// Asks a node for all that is measured, and measures nothing: for whoever watches it.
pub(crate) fn exercise(program: &Path, seconds: u32) -> Result<()> {
    const ALL: [Operation; 4] = [
        Operation::Create,
        Operation::CreateOnce,
        Operation::GetMasked,
        Operation::GetRevealed,
    ];
    let plan = Plan {
        warm_up_s: 0,
        measured_s: seconds,
        connections: vec![1, 64],
        operations: ALL.to_vec(),
        tokens: 10_000,
    };
    until_stopped(async {
        programs::require(&[("wrk", "wrk")])?;
        let stage = Stage::start(plan, program).await?;
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

/// Runs a task that a signal ends early.
fn until_stopped(task: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // The losing future is dropped, and with it every process that it holds.
        tokio::select! {
            result = task => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

async fn measure(arguments: &Arguments) -> Result<()> {
    programs::require(&[("wrk", "wrk")])?;
    if arguments.perf.is_some() {
        programs::require(&[("perf", "linux-perf")])?;
    }
    let programs = Programs::of(arguments).await?;
    if !arguments.short {
        machine::warn_if_busy("before the measurements").await?;
    }
    let stage = Stage::start(Plan::new(arguments), &programs.node).await?;
    let told = match &programs.hello {
        Some(hello) => one_node(arguments, &stage, hello).await,
        None => several_nodes(arguments, &stage).await,
    };
    told.with_context(|| stage.node.log_tail())?;
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
    tell(arguments, &results)?;
    if let Some(folder) = &arguments.perf {
        let perf = Perf::new(folder, arguments.call_graph.as_deref())?;
        for &operation in &stage.plan.operations {
            perf.record(stage, operation).await?;
        }
    }
    Ok(())
}

fn tell(arguments: &Arguments, results: &Results) -> Result<()> {
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

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, text).with_context(|| file.display().to_string())?;
    println!("bench: wrote {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Task {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn plan(words: &str) -> Plan {
        let words = ["bench"].into_iter().chain(words.split_whitespace());
        Plan::new(&Task::parse_from(words).arguments)
    }

    #[test]
    fn what_is_not_chosen_is_as_usual() {
        let connections = |words| plan(words).connections;

        assert_eq!(connections(""), [1, 16, 64]);
        assert_eq!(connections("--short"), [1, 16]);
        assert_eq!(connections("--nodes 1,3"), [64]);
        assert_eq!(connections("--nodes 1 --connections 8,32"), [8, 32]);
        assert_eq!(plan("").operations.len(), 3);
        let chosen = plan("--operations masked,create").operations;
        assert_eq!(chosen, [Operation::GetMasked, Operation::Create]);
    }

    #[test]
    fn a_warm_up_is_never_longer_than_what_follows() {
        let times = |words| (plan(words).warm_up_s, plan(words).measured_s);

        assert_eq!(times(""), (3, 10));
        assert_eq!(times("--seconds 2"), (2, 2));
        assert_eq!(times("--short"), (1, 2));
    }
}
