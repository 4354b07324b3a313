//! Running the official clients, unmodified, and other strangers against a vault made for the moment.

mod report;
mod sdk;
mod vault;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{process, workspace};
use report::Report;
use sdk::{Effort, Sdk};
use vault::Vault;

/// All test runners end with this code when they finished and something failed.
const TESTS_FAILED: i32 = 1;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run this suite only; may be given several times
    #[arg(long, value_enum)]
    sdk: Vec<Sdk>,
    /// What the random requests of Schemathesis are made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Let Schemathesis try for long, up to an hour
    #[arg(long)]
    long: bool,
}

/// One suite that was run.
struct Run {
    sdk: Sdk,
    report: Report,
    took: Duration,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let effort = Effort {
        seed: arguments.seed,
        is_long: arguments.long,
    };
    let is_chosen = |sdk: &Sdk| arguments.sdk.is_empty() || arguments.sdk.contains(sdk);
    let sdks: Vec<Sdk> = Sdk::value_variants()
        .iter()
        .copied()
        .filter(is_chosen)
        .collect();
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for sdk in &sdks {
        sdk.install(&folder)?;
    }
    let program = build()?;

    // Every suite, also after one that failed: the table is to be whole.
    let runs: Result<Vec<Run>> = sdks
        .iter()
        .map(|&sdk| run_suite(sdk, effort, &program, &folder))
        .collect();
    conclude(&runs?)
}

/// Runs one suite on a vault of its own, so that what others left behind cannot matter.
fn run_suite(sdk: Sdk, effort: Effort, program: &Path, folder: &Path) -> Result<Run> {
    let file = folder.join(format!("{sdk}-report.jsonl"));
    fs::write(&file, "").with_context(|| file.display().to_string())?;
    let started_at = Instant::now();
    let vault = Vault::start(program)?;
    say(&format!(
        "running the suite of {} against {}",
        sdk.package(),
        vault.base_url()
    ));
    let mut suite = sdk.suite(folder, effort);
    suite
        .envs(vault.variables())
        .env("CONFORMANCE_REPORT", &file);
    let status = process::run(suite)?;
    vault.stop()?;

    let report = Report::read(&file)?;
    let is_explained = status.code() == Some(TESTS_FAILED) && report.failed() > 0;
    if !status.success() && !is_explained {
        bail!("the {sdk} suite did not finish: {status}");
    }
    let took = started_at.elapsed();
    Ok(Run { sdk, report, took })
}

fn conclude(runs: &[Run]) -> Result<()> {
    let table = report::table(runs.iter().map(|run| &run.report));
    println!("\n{table}\n");
    let mut complaints = Vec::new();
    for Run { sdk, report, took } in runs {
        let (count, failed) = (report.count(), report.failed());
        let (well, seconds) = (count - failed, took.as_secs_f64());
        say(&format!("{sdk}: {well} of {count} ok in {seconds:.1} s"));
        if count == 0 {
            complaints.push(format!("the {sdk} suite tried nothing"));
        } else if failed > 0 {
            complaints.push(format!("{failed} of {count} failed with {sdk}"));
        }
    }
    if !complaints.is_empty() {
        bail!("{}", complaints.join("; "));
    }
    Ok(())
}

fn build() -> Result<PathBuf> {
    say("building cloakroom");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--package", "cloakroom-cli", "--locked"]);
    process::run_well(cargo)?;
    Ok(workspace::debug_folder().join("cloakroom"))
}

/// What is installed and written for the suites, beside what cargo builds.
fn folder() -> PathBuf {
    workspace::debug_folder().with_file_name("conformance")
}

fn say(what: &str) {
    println!("conformance: {what}");
}
