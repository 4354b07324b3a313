//! The pipeline: the checks that every change must pass, and the deep ones, which need a full table, a browser or a
//! cluster. Stops at the first failure.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloakroom_devtools::{process, workspace};

use crate::services::Services;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run the deep checks instead: query plans, growth, conformance, documentation, a short benchmark and faults
    #[arg(long)]
    deep: bool,
    /// Run only this step, of either part; can be repeated
    #[arg(long, value_name = "STEP", conflicts_with = "deep")]
    only: Vec<String>,
    /// List the steps and run none
    #[arg(long)]
    list: bool,
}

struct Step {
    name: &'static str,
    tool: Tool,
    words: &'static [&'static str],
    needs_services: bool,
}

enum Tool {
    Cargo,
    /// This program itself, as another process.
    Task,
    /// cargo-nextest if it is installed, else `cargo test`.
    Tests,
}

/// Fast steps first, and every step after those that it depends on.
static STEPS: [Step; 9] = [
    cargo("format", &["fmt", "--all", "--check"]),
    task("tidy", &["tidy"]),
    task("deny", &["deny"]),
    cargo(
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    ),
    cargo("docs", &["doc", "--workspace", "--no-deps", "--locked"]),
    BUILD,
    Step {
        name: "tests",
        tool: Tool::Tests,
        words: &["--workspace", "--locked"],
        needs_services: true,
    },
    cargo("doctests", &["test", "--doc", "--workspace", "--locked"]),
    task("generate", &["generate", "--check"]),
];

/// Run the programs of the build, which does nothing if it is up to date.
static DEEP_STEPS: [Step; 9] = [
    BUILD,
    task("scale", &["scale", "--tokens", "100000"]),
    task("growth", &["scale", "--grow", "0.1,0.3"]),
    Step {
        name: "conformance",
        tool: Tool::Task,
        words: &["conformance", "--nodes", "3", "--built"],
        needs_services: true,
    },
    task("site", &["docs"]),
    task("site-lint", &["docs", "--lint"]),
    task("site-run", &["docs", "--execute", "--built"]),
    Step {
        name: "bench",
        tool: Tool::Task,
        words: &["bench", "--short", "--built"],
        needs_services: true,
    },
    task("faults", &["faults", "--built", "--short"]),
];

const BUILD: Step = cargo(
    "build",
    &["build", "--workspace", "--all-targets", "--locked"],
);

const fn cargo(name: &'static str, words: &'static [&'static str]) -> Step {
    Step {
        name,
        tool: Tool::Cargo,
        words,
        needs_services: false,
    }
}

const fn task(name: &'static str, words: &'static [&'static str]) -> Step {
    Step {
        name,
        tool: Tool::Task,
        words,
        needs_services: false,
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let steps = choose(arguments.deep, &arguments.only)?;
    if arguments.list {
        for step in steps {
            println!("{:12} {}", step.name, step.words.join(" "));
        }
        return Ok(());
    }
    // Read before the steps: a build may replace the file of this program.
    let own_program = std::env::current_exe()?;
    let mut services = None;
    let mut report = Report::default();
    for step in &steps {
        println!("\n== {} ({})", step.name, free_disk());
        let started_at = Instant::now();
        let result = run_step(step, &own_program, &mut services);
        report.add(step.name, started_at.elapsed(), result.is_ok());
        if let Err(error) = result {
            drop(services);
            println!("\n{}", report.table(&steps));
            return Err(error).with_context(|| format!("{} failed", step.name));
        }
    }
    drop(services);
    println!("\n{}", report.table(&steps));
    Ok(())
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

fn choose(deep: bool, only: &[String]) -> Result<Vec<&'static Step>> {
    if only.is_empty() {
        let steps: &[Step] = if deep { &DEEP_STEPS } else { &STEPS };
        return Ok(steps.iter().collect());
    }
    let all = || STEPS.iter().chain(DEEP_STEPS.iter().skip(1));
    if let Some(unknown) = only
        .iter()
        .find(|name| !all().any(|step| step.name == **name))
    {
        let known: Vec<_> = all().map(|step| step.name).collect();
        bail!(
            "there is no step {unknown}; the steps are {}",
            known.join(", ")
        );
    }
    let is_chosen = |step: &&Step| only.iter().any(|name| name == step.name);
    Ok(all().filter(is_chosen).collect())
}

fn run_step(step: &Step, own_program: &PathBuf, services: &mut Option<Services>) -> Result<()> {
    let mut command = match step.tool {
        Tool::Cargo => workspace::cargo(),
        Tool::Task => {
            let mut command = Command::new(own_program);
            command.current_dir(workspace::root());
            command
        }
        Tool::Tests => test_runner(),
    };
    command.args(step.words);
    if step.name == "docs" {
        command.env("RUSTDOCFLAGS", "-D warnings");
    }
    if step.needs_services {
        let services = match services {
            Some(running) => running,
            None => services.insert(Services::start()?),
        };
        command.envs(
            services
                .variables()
                .iter()
                .map(|(name, value)| (name, value)),
        );
    }
    process::run_successfully(command)
}

fn test_runner() -> Command {
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

#[derive(Default)]
struct Report {
    rows: Vec<(&'static str, Duration, bool)>,
}

impl Report {
    fn add(&mut self, name: &'static str, time: Duration, is_ok: bool) {
        self.rows.push((name, time, is_ok));
    }

    fn table(&self, steps: &[&Step]) -> String {
        let mut lines = vec![row("step", "seconds", "result")];
        for &(name, time, is_ok) in &self.rows {
            lines.push(row(
                name,
                &seconds(time),
                if is_ok { "ok" } else { "FAILED" },
            ));
        }
        lines.extend(
            steps
                .iter()
                .skip(self.rows.len())
                .map(|step| row(step.name, "", "not run")),
        );
        let total: Duration = self.rows.iter().map(|row| row.1).sum();
        lines.push(row("total", &seconds(total), ""));
        lines.join("\n")
    }
}

fn row(name: &str, seconds: &str, result: &str) -> String {
    format!("{name:12} {seconds:>8}  {result}")
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_steps_run_in_pipeline_order() {
        let names = |only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            choose(false, &only)
                .unwrap()
                .iter()
                .map(|step| step.name)
                .collect()
        };

        assert_eq!(names(&["tests", "tidy"]), ["tidy", "tests"]);
        assert_eq!(names(&["faults", "tests"]), ["tests", "faults"]);
        assert_eq!(names(&["build"]), ["build"]);
        assert_eq!(names(&[]).len(), STEPS.len());
        assert!(choose(false, &["tidings".to_owned()]).is_err());
    }

    #[test]
    fn every_step_but_the_build_belongs_to_one_part() {
        let names = |deep| choose(deep, &[]).unwrap().into_iter().map(|step| step.name);

        let both: Vec<&str> = names(false)
            .filter(|name| names(true).any(|deep| deep == *name))
            .collect();

        assert_eq!(both, ["build"]);
    }

    #[test]
    fn the_table_lists_failed_and_skipped_steps() {
        let steps = choose(false, &[]).unwrap();
        let mut report = Report::default();
        report.add("format", Duration::from_millis(1500), true);
        report.add("tidy", Duration::from_millis(250), false);

        let text = report.table(&steps);

        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "step          seconds  result");
        assert_eq!(lines[1], "format            1.5  ok");
        assert_eq!(lines[2], "tidy              0.2  FAILED");
        assert_eq!(lines[3], "deny                   not run");
        assert_eq!(lines.last(), Some(&"total             1.8"));
    }
}
