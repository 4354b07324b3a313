//! Breaks a real cluster in every way it can, and counts what was acknowledged and lost.
#![expect(clippy::print_stdout, reason = "telling what happens is its job")]
#![expect(clippy::print_stderr, reason = "telling what failed is its job")]

mod checker;
mod clients;
mod cluster;
mod faults;
mod ledger;
mod report;
mod run;
mod sabotage;
mod soak;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use self::faults::{FAULTS, Fault};
use self::report::Row;
use self::run::{Plan, Run};
use self::sabotage::SABOTAGES;
use self::soak::Soak;

/// Nothing that was acknowledged is ever lost: shown on a real cluster, which is broken while clients ask.
#[derive(Parser)]
#[command(name = "cargo xtask faults", max_term_width = 100)]
struct Arguments {
    /// Which faults, by name [default: all; with --short, a selection]
    names: Vec<String>,
    /// A selection of faults for some seconds each
    #[arg(long)]
    short: bool,
    /// Name the faults and do nothing
    #[arg(long)]
    list: bool,
    /// Acknowledged writes of all faults together [default: 1000000; with names or --short, as many as come]
    #[arg(long, value_name = "N")]
    writes: Option<u64>,
    /// How many clients ask at a time
    #[arg(long, default_value_t = 24)]
    clients: usize,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Do something wrong on purpose, which must be noticed: one by name, or `all`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "writes"])]
    sabotage: Option<String>,
    /// Instead: a long load at four fifths of what the cluster can do, with a fault every minute
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["names", "writes", "sabotage", "short"])]
    soak: Option<u64>,
    /// With --soak: draw p99 over time
    #[arg(long, value_name = "FILE", requires = "soak")]
    svg: Option<PathBuf>,
    /// Another release of the vault's program, for rolling-upgrade
    #[arg(long, value_name = "FILE")]
    old_binary: Option<PathBuf>,
    /// Keep the folder of the run with its logs and its ledger
    #[arg(long)]
    keep: bool,
    /// The vault's program
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// The folder of the workspace
    #[arg(long, value_name = "FOLDER")]
    workspace: PathBuf,
}

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        for fault in FAULTS {
            println!("{:22} {}", fault.name, fault.what);
        }
        println!("\nwith --sabotage:");
        for row in SABOTAGES {
            println!("{:22} {} ({})", row.name, row.what, row.fault);
        }
        return Ok(());
    }
    ensure!(
        nix::unistd::Uid::effective().is_root(),
        "faults needs root: it makes network namespaces and mounts disks, and gives all of them back"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // The losing future is dropped, and with it the whole cluster.
        tokio::select! {
            result = run_chosen(arguments) => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

async fn run_chosen(arguments: &Arguments) -> Result<()> {
    let sabotages: Vec<&sabotage::Row> = match arguments.sabotage.as_deref() {
        None if arguments.short && arguments.names.is_empty() => vec![&SABOTAGES[0]],
        None => Vec::new(),
        Some("all") => SABOTAGES.iter().collect(),
        Some(name) => vec![sabotage::find(name).context("no such sabotage; --list names them")?],
    };
    let chosen = match arguments.sabotage {
        None => choose(arguments)?,
        Some(_) => Vec::new(),
    };
    let old_binary = arguments.old_binary.as_ref();
    let old_binary = old_binary.map(std::path::absolute).transpose()?;
    let plan = plan(arguments, chosen.len());
    let mut run = Run::start(options(arguments)?, plan, old_binary).await?;
    if let Some(minutes) = arguments.soak {
        let soak = Soak {
            minutes,
            json: arguments.json.clone(),
            svg: arguments.svg.clone(),
        };
        return soak.run(&mut run).await;
    }
    if !chosen.is_empty() {
        strike_all(arguments, &mut run, chosen).await?;
    }
    sabotage_all(&mut run, &sabotages).await
}

/// Each sabotage must turn its fault red, by the rule that is there for it.
async fn sabotage_all(run: &mut Run, rows: &[&sabotage::Row]) -> Result<()> {
    let mut told = Vec::new();
    let mut unnoticed = Vec::new();
    for row in rows {
        println!("faults: sabotage {}: {}", row.name, row.what);
        let fault = faults::find(row.fault).context("a sabotage of no fault")?;
        let result = run.strike_with(fault, Some(row.sabotage)).await?;
        let is_noticed = result.breaks(row.rule);
        if !is_noticed {
            unnoticed.push(row.name);
        }
        println!("faults: sabotage {}: {}", row.name, verdict(is_noticed));
        told.push([row.name, row.fault, row.rule.name(), verdict(is_noticed)]);
    }
    if !told.is_empty() {
        println!("\n{}\n", report::sabotages(&told));
    }
    ensure!(
        unnoticed.is_empty(),
        "nobody noticed {}",
        unnoticed.join(", ")
    );
    Ok(())
}

fn verdict(is_noticed: bool) -> &'static str {
    if is_noticed { "noticed" } else { "NOT NOTICED" }
}

async fn strike_all(
    arguments: &Arguments,
    run: &mut Run,
    chosen: Vec<&'static Fault>,
) -> Result<()> {
    let mut rows = Vec::new();
    let struck = strike_each(run, chosen, &mut rows, arguments.json.as_deref()).await;
    // Also of a run that could not go on: what it has took long enough.
    println!("\n{}\n", report::table(&rows));
    let acknowledged: u64 = rows.iter().map(|row| row.acknowledged).sum();
    println!(
        "faults: {acknowledged} acknowledged writes in {:.0} s",
        run.seconds()
    );
    struck?;
    let red: Vec<&str> = rows
        .iter()
        .filter(|row| !row.is_green())
        .map(|row| row.fault.as_str())
        .collect();
    ensure!(red.is_empty(), "promises were broken at {}", red.join(", "));
    Ok(())
}

async fn strike_each(
    run: &mut Run,
    chosen: Vec<&'static Fault>,
    rows: &mut Vec<Row>,
    json: Option<&Path>,
) -> Result<()> {
    let mut add = |row: Row| {
        tell(&row);
        rows.push(row);
        match json {
            Some(file) => std::fs::write(file, serde_json::to_string_pretty(rows)?)
                .with_context(|| file.display().to_string()),
            None => Ok(()),
        }
    };
    for fault in chosen {
        add(run.strike(fault).await?)?;
    }
    add(run.check_all().await?)
}

fn tell(row: &Row) {
    let verdict = if row.is_green() { "ok" } else { "BROKEN" };
    println!(
        "faults: {}: {verdict}, {} acknowledged, {} tokens, writes away {:.1} s, {:.0} s in all",
        row.fault, row.acknowledged, row.tokens, row.writes_away_s, row.seconds
    );
    for violation in &row.violations {
        println!("  {violation}");
    }
}

fn choose(arguments: &Arguments) -> Result<Vec<&'static Fault>> {
    if arguments.names.is_empty() {
        let is_chosen = |fault: &&Fault| fault.is_short || !arguments.short;
        return Ok(FAULTS.iter().filter(is_chosen).collect());
    }
    let known = |name: &String| {
        faults::find(name).with_context(|| format!("no fault is called {name}; --list names them"))
    };
    arguments.names.iter().map(known).collect()
}

fn plan(arguments: &Arguments, faults: usize) -> Plan {
    let is_whole = arguments.names.is_empty() && arguments.sabotage.is_none() && !arguments.short;
    let writes = arguments
        .writes
        .unwrap_or(if is_whole { 1_000_000 } else { 0 });
    let short = |short, long| Duration::from_secs(if arguments.short { short } else { long });
    Plan {
        clients: arguments.clients,
        calm: short(2, 4),
        writes: writes.div_ceil(faults.max(1) as u64),
        hold: short(6, 15),
    }
}

fn options(arguments: &Arguments) -> Result<cluster::Options> {
    let workspace = std::path::absolute(&arguments.workspace)?;
    Ok(cluster::Options {
        binary: std::path::absolute(&arguments.binary)?,
        templates: workspace.join("deploy/ha"),
        limits: workspace.join("crates/cloakroom/src/rate_limits/limits.toml"),
        disk_mb: if arguments.short { 2_000 } else { 8_000 },
        keeps_folder: arguments.keep,
    })
}
