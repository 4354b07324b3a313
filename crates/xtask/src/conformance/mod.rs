//! Running the official clients, unmodified, and other strangers against a vault made for the moment.

mod methods;
mod report;
mod sdk;
mod vault;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{process, workspace};
use methods::{Methods, Unsupported};
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
    /// Run so many nodes behind HAProxy, which hands each request to the next one
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    nodes: u8,
    /// Run this program instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Run what `cargo build --workspace --all-targets` has made
    #[arg(long, conflicts_with = "binary")]
    built: bool,
    /// Let Schemathesis try for long, up to an hour
    #[arg(long)]
    long: bool,
}

/// One suite that was run.
struct Run {
    sdk: Sdk,
    report: Report,
    /// The official clients tell of every method they have.
    methods: Option<Methods>,
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
    let program = match &arguments.binary {
        Some(program) => std::path::absolute(program)?,
        None if arguments.built => workspace::built("cloakroom")?,
        None => build()?,
    };

    // Every suite, also after one that failed: the table is to be whole.
    let runs: Result<Vec<Run>> = sdks
        .iter()
        .map(|&sdk| run_suite(sdk, effort, (&program, arguments.nodes), &folder))
        .collect();
    let runs = runs?;
    let mut complaints = conclude(&runs);
    complaints.extend(conclude_methods(&runs, &folder)?);
    if !complaints.is_empty() {
        for failure in runs.iter().flat_map(|run| run.report.failures()) {
            say(&format!("FAILED {failure}"));
        }
        bail!("{}", complaints.join("; "));
    }
    Ok(())
}

/// Runs one suite on a vault of its own, so that what others left behind cannot matter.
fn run_suite(
    sdk: Sdk,
    effort: Effort,
    (program, nodes): (&Path, u8),
    folder: &Path,
) -> Result<Run> {
    let file = folder.join(format!("{sdk}-report.jsonl"));
    fs::write(&file, "").with_context(|| file.display().to_string())?;
    let methods = methods_file(sdk, folder);
    fs::write(&methods, "").with_context(|| methods.display().to_string())?;
    let started_at = Instant::now();
    let vault = Vault::start(program, nodes)?;
    // For what can be done to a tenant only once.
    let spare = Vault::start(program, 1)?;
    let limited = Vault::start_limited(program, nodes)?;
    say(&format!(
        "running the suite of {} against {} ({nodes} nodes)",
        sdk.package(),
        vault.base_url()
    ));
    let mut suite = sdk.suite(folder, effort);
    suite
        .envs(vault.variables())
        .envs(spare.spare_variables())
        .envs(limited.limited_variables())
        .env("CONFORMANCE_REPORT", &file)
        .env("CONFORMANCE_METHODS", &methods);
    let status = process::run(suite)?;
    vault.stop()?;
    spare.stop()?;
    limited.stop()?;

    let report = Report::read(&file)?;
    let is_explained = status.code() == Some(TESTS_FAILED) && report.failed() > 0;
    if !status.success() && !is_explained {
        bail!("the {sdk} suite did not finish: {status}");
    }
    let took = started_at.elapsed();
    let methods = if sdk.tells_methods() {
        Some(Methods::read(&methods, &Unsupported::read()?)?)
    } else {
        None
    };
    Ok(Run {
        sdk,
        report,
        methods,
        took,
    })
}

/// Prints what was tried, and returns what is wrong with it.
fn conclude(runs: &[Run]) -> Vec<String> {
    let table = report::table(runs.iter().map(|run| &run.report));
    println!("\n{table}\n");
    let mut complaints = Vec::new();
    for run in runs {
        let Run {
            sdk, report, took, ..
        } = run;
        let (count, failed) = (report.count(), report.failed());
        let waiting = report.waiting();
        let (well, seconds) = (count - failed - waiting, took.as_secs_f64());
        let not_yet = match waiting {
            0 => String::new(),
            some => format!(", {some} not yet"),
        };
        say(&format!(
            "{sdk}: {well} of {count} ok{not_yet} in {seconds:.1} s"
        ));
        if count == 0 {
            complaints.push(format!("the {sdk} suite tried nothing"));
        } else if failed > 0 {
            complaints.push(format!("{failed} of {count} failed with {sdk}"));
        }
    }
    complaints
}

/// Prints every method of the clients that ran, and returns what is wrong with them.
fn conclude_methods(runs: &[Run], folder: &Path) -> Result<Vec<String>> {
    let clients: Vec<&Methods> = runs.iter().filter_map(|run| run.methods.as_ref()).collect();
    if clients.is_empty() {
        return Ok(Vec::new());
    }
    println!("\n{}\n", methods::table(&clients));
    let mut complaints: Vec<String> = clients.iter().flat_map(|one| one.complaints()).collect();
    let all = Sdk::value_variants().iter();
    let is_whole = clients.len() == all.filter(|sdk| sdk.tells_methods()).count();
    if is_whole {
        for entry in Unsupported::read()?.idle(&clients) {
            complaints.push(format!("conformance/unsupported.json: nothing is {entry}"));
        }
        let page = methods::page(&clients);
        let written = folder.join("sdk-methods.md");
        fs::write(&written, &page).with_context(|| written.display().to_string())?;
        let kept = fs::read_to_string(workspace::root().join("docs/api/sdk-methods.md"));
        if complaints.is_empty() && kept.ok() != Some(page) {
            let written = written.display();
            complaints.push(format!("docs/api/sdk-methods.md is old: copy {written}"));
        }
    }
    Ok(complaints)
}

fn methods_file(sdk: Sdk, folder: &Path) -> PathBuf {
    folder.join(format!("{sdk}-methods.jsonl"))
}

fn build() -> Result<PathBuf> {
    say("building cloakroom");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--package", "cloakroom-cli", "--locked"]);
    process::run_well(cargo)?;
    workspace::built("cloakroom")
}

/// What is installed and written for the suites, beside what cargo builds.
fn folder() -> PathBuf {
    workspace::target_folder().join("conformance")
}

fn say(what: &str) {
    println!("conformance: {what}");
}
