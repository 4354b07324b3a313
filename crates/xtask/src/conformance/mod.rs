//! Running the official clients, unmodified, against a vault made for the moment.

mod report;
mod sdk;
mod vault;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{process, workspace};
use report::Report;
use sdk::Sdk;
use vault::Vault;

/// Both test runners end with this code when they finished and something failed.
const TESTS_FAILED: i32 = 1;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run the suite of this SDK only
    #[arg(long, value_enum)]
    sdk: Option<Sdk>,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let sdks = arguments
        .sdk
        .map_or_else(|| Sdk::ALL.to_vec(), |sdk| vec![sdk]);
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for sdk in &sdks {
        sdk.install(&folder)?;
    }
    let program = build()?;

    say("starting a vault");
    let vault = Vault::start(&program)?;
    say(&format!("the vault listens at {}", vault.base_url()));
    let results = run_suites(&sdks, &vault, &folder);
    say("stopping the vault");
    let stopped = vault.stop();

    let reports = results?;
    stopped?;
    conclude(&reports)
}

/// Runs every suite, also after one that failed: the table is to be whole.
fn run_suites(sdks: &[Sdk], vault: &Vault, folder: &Path) -> Result<Vec<(Sdk, Report)>> {
    let mut reports = Vec::new();
    for &sdk in sdks {
        say(&format!("running the suite of {}", sdk.package()));
        let file = folder.join(format!("{sdk}-report.jsonl"));
        fs::write(&file, "").with_context(|| file.display().to_string())?;
        let mut suite = sdk.suite(folder);
        suite
            .envs(vault.variables())
            .env("CONFORMANCE_REPORT", &file);
        let status = process::run(suite)?;
        let report = Report::read(&file)?;
        let is_explained = status.code() == Some(TESTS_FAILED) && report.failed() > 0;
        if !status.success() && !is_explained {
            bail!("the {sdk} suite did not finish: {status}");
        }
        reports.push((sdk, report));
    }
    Ok(reports)
}

fn conclude(reports: &[(Sdk, Report)]) -> Result<()> {
    let table = report::table(reports.iter().map(|(_, report)| report));
    println!("\n{table}\n");
    let mut complaints = Vec::new();
    for (sdk, report) in reports {
        let (count, failed) = (report.count(), report.failed());
        say(&format!("{sdk}: {} of {count} ok", count - failed));
        if count == 0 {
            complaints.push(format!("the {sdk} suite tried nothing"));
        } else if failed > 0 {
            complaints.push(format!("{failed} of {count} failed with the {sdk} SDK"));
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
