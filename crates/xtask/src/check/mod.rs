//! The pipeline: the checks that every change must pass, and the deep ones, which need a full table, a browser or a
//! cluster. Stops at the first failure.

mod passed;
mod quick;
mod report;
mod runner;
mod steps;
mod test_report;
mod usage;

use std::num::NonZero;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use cloakroom_devtools::workspace;

use self::passed::WorkingCopy;
use self::report::{Outcome, Report};
use self::runner::Runner;
use self::steps::{STEPS, Step, Tool};
use self::usage::{Stopwatch, Usage};

/// Set by `.ci/run`: when it started, in seconds since 1970.
const STARTED_AT: &str = "CLOAKROOM_PIPELINE_STARTED_AT";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run the deep checks instead: query plans, growth, conformance, documentation, a short benchmark and faults
    #[arg(long)]
    deep: bool,
    /// Run all checks, as the pipeline does
    #[arg(long, conflicts_with = "deep")]
    all: bool,
    /// Also run checks that have passed on this machine and whose files are the same since
    #[arg(long)]
    full: bool,
    /// Run only this step; can be repeated
    #[arg(long, value_name = "STEP", conflicts_with_all = ["deep", "all"])]
    only: Vec<String>,
    /// Check only what has changed and what depends on it, in a few minutes
    #[arg(long, conflicts_with_all = ["deep", "all", "only", "record"])]
    quick: bool,
    /// What --quick compares with, instead of the main line
    #[arg(long, value_name = "COMMIT", requires = "quick")]
    base: Option<String>,
    /// Write the table of steps to CONTRIBUTING.md, under this name
    #[arg(long, value_name = "NAME")]
    record: Option<String>,
    /// List the steps and run none
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.quick {
        return quick::run(arguments.base.as_deref());
    }
    let steps = choose(arguments)?;
    if arguments.list {
        for step in steps {
            println!("{:12} {}", step.name, step.words.join(" "));
        }
        return Ok(());
    }
    let may_skip = !arguments.full && arguments.only.is_empty();
    let (report, result) = run_steps(&steps, may_skip)?;
    println!("\n{}", report.text());
    result?;
    match &arguments.record {
        Some(name) => report.record(name),
        None => Ok(()),
    }
}

/// Runs the steps until one fails. The report has a row for each.
fn run_steps(steps: &[&'static Step], may_skip: bool) -> Result<(Report, Result<()>)> {
    let runner = Runner::new()?;
    let working_copy = WorkingCopy::read()?;
    let mut report = Report::default();
    if let Some(usage) = preparation() {
        report.add("preparation", usage, Outcome::Passed);
    }
    let mut result = Ok(());
    for step in steps {
        if result.is_err() {
            report.add(step.name, Usage::default(), Outcome::NotRun);
            continue;
        }
        let passed = match may_skip {
            true => working_copy.skip(step)?,
            false => None,
        };
        if let Some(passed) = passed {
            println!("\n== {}: unchanged since {}", step.name, passed.commit);
            let outcome = Outcome::Unchanged(passed.commit);
            report.add(step.name, Usage::default(), outcome);
            continue;
        }
        println!("\n== {} ({})", step.name, free_disk());
        let stopwatch = Stopwatch::start();
        result = run_step(step, &runner)
            .and_then(|()| working_copy.record(step))
            .with_context(|| format!("{} failed", step.name));
        report.add(step.name, stopwatch.stop(), Outcome::of(&result));
    }
    Ok((report, result))
}

/// What the pipeline did before this program ran: it installed packages and compiled this program.
fn preparation() -> Option<Usage> {
    let started_at = std::env::var_os(STARTED_AT)?;
    let started_at = started_at.to_str()?.parse().ok()?;
    let started_at = UNIX_EPOCH + Duration::from_secs(started_at);
    Some(Usage {
        elapsed: started_at.elapsed().ok()?,
        ..Usage::default()
    })
}

/// Names the usual reason why a step fails on one machine only.
fn free_disk() -> String {
    nix::sys::statvfs::statvfs(&workspace::root()).map_or_else(
        |error| format!("free disk unknown: {error}"),
        |status| {
            let free = status.blocks_available() * status.fragment_size();
            format!("{} MB of disk free", free / 1_000_000)
        },
    )
}

fn choose(arguments: &Arguments) -> Result<Vec<&'static Step>> {
    let Arguments {
        deep, all, only, ..
    } = arguments;
    if let Some(unknown) = only
        .iter()
        .find(|name| !STEPS.iter().any(|step| step.name == **name))
    {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!(
            "there is no step {unknown}; the steps are {}",
            known.join(", ")
        );
    }
    let is_chosen = |step: &&Step| match only.is_empty() {
        true => *all || step.is_deep == *deep || (*deep && step.name == steps::BUILD),
        false => only.iter().any(|name| name == step.name),
    };
    Ok(STEPS.iter().filter(is_chosen).collect())
}

fn run_step(step: &Step, runner: &Runner) -> Result<()> {
    let mut command = match step.tool {
        Tool::Cargo => workspace::cargo(),
        Tool::Task => runner.task(&[]),
        Tool::Tests => test_runner(),
    };
    command.args(step.words);
    if step.needs_services {
        command = runner.with_services(&command);
    }
    if step.name == "docs" {
        command.env("RUSTDOCFLAGS", "-D warnings");
    }
    match step.tool {
        Tool::Tests => runner.run_tests(command),
        Tool::Cargo | Tool::Task => runner.run(command),
    }
}

/// cargo-nextest if it is installed, else `cargo test`.
pub(super) fn test_runner() -> Command {
    let mut command = workspace::cargo();
    if workspace::has_program("cargo-nextest") {
        // Most tests wait for time, commits or servers.
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        command.args(["nextest", "run", "--test-threads"]);
        command.arg((2 * cores).to_string());
    } else {
        command.args(["test", "--all-targets"]);
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn names(words: &[&str]) -> Result<Vec<&'static str>> {
        let words = std::iter::once("check").chain(words.iter().copied());
        let steps = choose(&Command::parse_from(words).arguments)?;
        Ok(steps.into_iter().map(|step| step.name).collect())
    }

    #[test]
    fn chosen_steps_run_in_pipeline_order() {
        let chosen = names(&["--only", "tests", "--only", "tidy"]).unwrap();

        assert_eq!(chosen, ["tidy", "tests"]);
        assert_eq!(names(&["--only", "faults"]).unwrap(), ["faults"]);
        assert!(names(&["--only", "tidings"]).is_err());
    }

    #[test]
    fn every_step_but_the_build_belongs_to_one_part() {
        let (first, deep) = (names(&[]).unwrap(), names(&["--deep"]).unwrap());

        let both: Vec<_> = first.iter().filter(|name| deep.contains(name)).collect();

        assert_eq!(both, [&steps::BUILD]);
        assert_eq!(
            names(&["--all"]).unwrap().len(),
            first.len() + deep.len() - 1
        );
    }
}
