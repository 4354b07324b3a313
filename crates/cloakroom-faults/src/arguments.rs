//! Command-line arguments.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use crate::cluster;
use crate::faults::{self, FAULTS, Fault};
use crate::run::Plan;

/// Injects faults into a real cluster under load and checks that no acknowledged write is lost.
#[derive(Parser)]
#[command(name = "cargo xtask faults", max_term_width = 100)]
pub(crate) struct Arguments {
    /// Names of faults to inject [default: all; with --short, a selection]
    pub(crate) names: Vec<String>,
    /// Inject a selection of faults for a few seconds each
    #[arg(long)]
    pub(crate) short: bool,
    /// List the faults and mutations, and exit
    #[arg(long)]
    pub(crate) list: bool,
    /// Total number of acknowledged writes [default: 1000000; with names or --short, no minimum]
    #[arg(long, value_name = "N")]
    pub(crate) writes: Option<u64>,
    /// Number of concurrent clients
    #[arg(long, default_value_t = 24)]
    pub(crate) clients: usize,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Run a mutation test, whose injected bug the checker must detect: a name, or `all`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "writes"])]
    pub(crate) mutation: Option<String>,
    /// Run a soak test at 80% of the measured capacity, with a fault every minute
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["names", "writes", "mutation", "short"])]
    pub(crate) soak: Option<u64>,
    /// With --soak: plot p99 latency over time
    #[arg(long, value_name = "FILE", requires = "soak")]
    pub(crate) svg: Option<PathBuf>,
    /// Binary of another release, for rolling-upgrade
    #[arg(long, value_name = "FILE")]
    pub(crate) old_binary: Option<PathBuf>,
    /// Keep the folder of the run with its logs and history
    #[arg(long)]
    pub(crate) keep: bool,
    /// The cloakroom binary
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: PathBuf,
    /// The workspace folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: PathBuf,
}

pub(crate) fn choose(arguments: &Arguments) -> Result<Vec<&'static Fault>> {
    if arguments.names.is_empty() {
        let is_chosen = |fault: &&Fault| fault.in_short_run || !arguments.short;
        return Ok(FAULTS.iter().filter(is_chosen).collect());
    }
    let known = |name: &String| {
        faults::find(name)
            .with_context(|| format!("there is no fault {name}; --list shows all faults"))
    };
    arguments.names.iter().map(known).collect()
}

pub(crate) fn plan(arguments: &Arguments, faults: usize) -> Plan {
    let is_whole = arguments.names.is_empty() && arguments.mutation.is_none() && !arguments.short;
    let writes = arguments
        .writes
        .unwrap_or(if is_whole { 1_000_000 } else { 0 });
    let short = |short, long| Duration::from_secs(if arguments.short { short } else { long });
    Plan {
        clients: arguments.clients,
        quiet: short(2, 4),
        writes: writes.div_ceil(faults.max(1) as u64),
        fault_duration: short(6, 15),
        outage_factor: if arguments.short { 3 } else { 1 },
    }
}

pub(crate) fn options(arguments: &Arguments) -> Result<cluster::Options> {
    let workspace = std::path::absolute(&arguments.workspace)?;
    Ok(cluster::Options {
        binary: std::path::absolute(&arguments.binary)?,
        templates: workspace.join("deploy/ha"),
        limits: workspace.join("crates/cloakroom-core/src/rate_limits/limits.toml"),
        disk_mb: if arguments.short { 2_000 } else { 8_000 },
        keep_folder: arguments.keep,
    })
}
