//! Everything that a change must pass: each step timed, the first failure ends it.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::services::Services;
use crate::{process, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and run none
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
    /// cargo-nextest where it is installed, cargo's own runner elsewhere.
    Tests,
}

/// Cheap before dear, and nothing before what it needs.
static STEPS: [Step; 14] = [
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
    cargo(
        "build",
        &["build", "--workspace", "--all-targets", "--locked"],
    ),
    Step {
        name: "tests",
        tool: Tool::Tests,
        words: &["--workspace", "--locked"],
        needs_services: true,
    },
    cargo("doctests", &["test", "--doc", "--workspace", "--locked"]),
    task("generate", &["generate", "--check"]),
    task("scale", &["scale", "--tokens", "100000"]),
    task("growth", &["scale", "--grow", "0.1,0.3"]),
    Step {
        name: "conformance",
        tool: Tool::Task,
        words: &["conformance", "--nodes", "3", "--built"],
        needs_services: true,
    },
    Step {
        name: "bench",
        tool: Tool::Task,
        words: &["bench", "--short", "--built"],
        needs_services: true,
    },
    task("faults", &["faults", "--built", "--short"]),
];

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
    let steps = choose(&arguments.only)?;
    if arguments.list {
        for step in steps {
            println!("{:12} {}", step.name, step.words.join(" "));
        }
        return Ok(());
    }
    // Asked now: a later build replaces the program's file, and the answer would change.
    let own_program = std::env::current_exe()?;
    let mut services = None;
    let mut report = Report::default();
    for step in &steps {
        println!("\n== {}", step.name);
        let started_at = Instant::now();
        let result = perform(step, &own_program, &mut services);
        report.took(step.name, started_at.elapsed(), result.is_ok());
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

fn choose(only: &[String]) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = only
        .iter()
        .find(|name| !STEPS.iter().any(|step| step.name == **name))
    {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!(
            "no step is called {unknown}; there are {}",
            known.join(", ")
        );
    }
    let is_chosen = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(STEPS.iter().filter(is_chosen).collect())
}

fn perform(step: &Step, own_program: &PathBuf, services: &mut Option<Services>) -> Result<()> {
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
    process::run_well(command)
}

fn test_runner() -> Command {
    let mut command = workspace::cargo();
    if workspace::has_program("cargo-nextest") {
        // Most tests wait for something: a second, a commit, a server that starts.
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
    fn took(&mut self, name: &'static str, time: Duration, is_well: bool) {
        self.rows.push((name, time, is_well));
    }

    fn table(&self, steps: &[&Step]) -> String {
        let mut lines = vec![row("step", "seconds", "result")];
        for &(name, time, is_well) in &self.rows {
            lines.push(row(
                name,
                &seconds(time),
                if is_well { "ok" } else { "FAILED" },
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
    fn steps_are_chosen_by_name_and_kept_in_order() {
        let names = |only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            choose(&only)
                .unwrap()
                .iter()
                .map(|step| step.name)
                .collect()
        };

        assert_eq!(names(&["tests", "tidy"]), ["tidy", "tests"]);
        assert_eq!(names(&[]).len(), STEPS.len());
        assert!(choose(&["tidings".to_owned()]).is_err());
    }

    #[test]
    fn the_table_tells_what_failed_and_what_was_not_run() {
        let steps = choose(&[]).unwrap();
        let mut report = Report::default();
        report.took("format", Duration::from_millis(1500), true);
        report.took("tidy", Duration::from_millis(250), false);

        let text = report.table(&steps);

        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "step          seconds  result");
        assert_eq!(lines[1], "format            1.5  ok");
        assert_eq!(lines[2], "tidy              0.2  FAILED");
        assert_eq!(lines[3], "deny                   not run");
        assert_eq!(lines.last(), Some(&"total             1.8"));
    }
}
