//! `cargo xtask check --quick`: the checks of what has changed, in minutes.
//!
//! All tests of the changed crates, clippy and the unit tests of the crates that use one of them directly. The HTTP
//! tests of those run in the pipeline.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cloakroom_devtools::workspace;
use serde::Deserialize;

use super::passed::git;
use super::report::{Outcome, Report};
use super::runner::Runner;
use super::test_runner;
use super::usage::Stopwatch;

/// Steps that need servers.
const TESTS: &str = "tests";

/// Folders that are compiled into a crate.
const COMPILED_IN: [(&str, &str); 4] = [
    ("docs/api/", "cloakroom"),
    ("formulas/", "cloakroom-formulas"),
    ("migrations/", "cloakroom-platform"),
    ("web/elements/dist/", "cloakroom-elements"),
];

/// Files that decide how every crate is compiled.
const OF_EVERY_CRATE: [&str; 4] = [
    "Cargo.toml",
    "Cargo.lock",
    "clippy.toml",
    ".cargo/config.toml",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`, or none.
    kind: Option<String>,
}

/// What a set of changed files needs.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    changed: BTreeSet<String>,
    /// They use a changed crate directly.
    dependents: BTreeSet<String>,
    pages: Vec<String>,
    has_elements: bool,
}

pub(super) fn run(base: Option<&str>) -> Result<()> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => main_line(),
    };
    let plan = Plan::new(&changed_files(&base)?, &packages()?);
    println!("quick: against {base}: {plan}");

    let runner = Runner::new()?;
    let mut report = Report::default();
    let mut result = Ok(());
    for (name, command) in plan.commands(&runner) {
        println!("\n== {name}");
        let stopwatch = Stopwatch::start();
        result = match name {
            TESTS => runner.run_tests(runner.with_services(&command)),
            _ => runner.run(command),
        };
        report.add(name, stopwatch.stop(), Outcome::of(&result));
        if result.is_err() {
            break;
        }
    }
    println!("\n{}", report.text());
    result
}

impl Plan {
    fn new(files: &[String], packages: &[Package]) -> Self {
        let mut plan = Self::default();
        for file in files {
            if OF_EVERY_CRATE.contains(&file.as_str()) {
                plan.changed
                    .extend(packages.iter().map(|package| package.name.clone()));
            }
            plan.changed.extend(owner(file).map(str::to_owned));
            plan.has_elements |= file.starts_with("web/elements/");
            if file.ends_with(".md") && Path::new(file).starts_with("docs") {
                plan.pages.push(file.clone());
            }
        }
        plan.changed
            .retain(|name| packages.iter().any(|package| package.name == *name));
        for package in packages {
            let uses_changed = package.dependencies.iter().any(|dependency| {
                dependency.kind.as_deref() != Some("dev") && plan.changed.contains(&dependency.name)
            });
            if uses_changed && !plan.changed.contains(&package.name) {
                plan.dependents.insert(package.name.clone());
            }
        }
        plan
    }

    fn commands(&self, runner: &Runner) -> Vec<(&'static str, Command)> {
        let mut commands = vec![
            ("format", cargo(&["fmt", "--all", "--check"], [])),
            ("tidy", runner.task(&["tidy"])),
        ];
        if self.has_elements {
            commands.push(("elements", elements()));
        }
        if !self.changed.is_empty() {
            let all = self.changed.iter().chain(&self.dependents);
            let mut clippy = cargo(&["clippy", "--locked", "--all-targets"], all);
            clippy.args(["--", "-D", "warnings"]);
            commands.push(("clippy", clippy));
            commands.push((TESTS, tests(&self.changed)));
            if !self.dependents.is_empty() {
                let mut unit_tests = tests(&self.dependents);
                unit_tests.args(["--lib", "--bins"]);
                commands.push((TESTS, unit_tests));
            }
        }
        if !self.pages.is_empty() {
            commands.push(("site-lint", runner.task(&["docs", "--lint"])));
            let mut pages = runner.task(&["docs", "--execute"]);
            pages.args(self.pages.iter().flat_map(|page| ["--page", page]));
            commands.push(("site-run", pages));
        }
        commands
    }
}

/// The crate that a file is compiled into.
fn owner(file: &str) -> Option<&str> {
    if let Some(inside) = file.strip_prefix("crates/") {
        return inside.split('/').next();
    }
    let is_inside = |(folder, _): &&(&str, _)| file.starts_with(folder) && !file.ends_with(".md");
    COMPILED_IN
        .iter()
        .find(is_inside)
        .map(|(_, package)| *package)
}

fn cargo<'a>(words: &[&str], packages: impl IntoIterator<Item = &'a String>) -> Command {
    let mut command = workspace::cargo();
    command.args(words);
    for package in packages {
        command.args(["--package", package]);
    }
    command
}

fn tests(packages: &BTreeSet<String>) -> Command {
    let mut command = test_runner();
    command.args(["--locked", "--no-tests", "pass"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command
}

/// Compiles web elements, and compares the result with what is committed.
fn elements() -> Command {
    let mut npm = Command::new("sh");
    npm.args([
        "-c",
        "{ [ -e node_modules ] || npm ci; } && npm run build && git diff --exit-code --stat dist",
    ]);
    npm.current_dir(workspace::root().join("web/elements"));
    npm
}

/// Where this branch left the main line, or the last commit on the main line itself.
fn main_line() -> String {
    let fork = |branch| git(&["merge-base", "HEAD", branch], |_| {}).ok();
    let fork = fork("origin/main").or_else(|| fork("main"));
    fork.unwrap_or_else(|| "HEAD".to_owned())
}

fn changed_files(base: &str) -> Result<Vec<String>> {
    let changed = git(&["diff", "--name-only", base], |_| {})?;
    let new = git(&["ls-files", "--others", "--exclude-standard"], |_| {})?;
    Ok(changed
        .lines()
        .chain(new.lines())
        .map(str::to_owned)
        .collect())
}

fn packages() -> Result<Vec<Package>> {
    let mut cargo = workspace::cargo();
    cargo.args(["metadata", "--no-deps", "--locked", "--format-version", "1"]);
    let output = cargo.output().context("cargo metadata")?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(metadata.packages)
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match names.is_empty() {
                true => "no crates".to_owned(),
                false => names.join(", "),
            }
        };
        let (changed, dependents) = (list(&self.changed), list(&self.dependents));
        write!(
            f,
            "{changed} changed; {dependents} use them; {} pages",
            self.pages.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn packages(edges: &[(&str, &str, Option<&str>)]) -> Vec<Package> {
        let mut packages: BTreeMap<&str, Vec<Dependency>> = BTreeMap::new();
        for (user, used, kind) in edges {
            packages.entry(used).or_default();
            packages.entry(user).or_default().push(Dependency {
                name: (*used).to_owned(),
                kind: kind.map(str::to_owned),
            });
        }
        let package = |(name, dependencies): (&str, _)| Package {
            name: name.to_owned(),
            dependencies,
        };
        packages.into_iter().map(package).collect()
    }

    fn plan(files: &[&str]) -> Plan {
        let packages = packages(&[
            ("cloakroom-tokens", "cloakroom-core", None),
            ("cloakroom-proxy", "cloakroom-tokens", None),
            ("cloakroom", "cloakroom-proxy", None),
            ("cloakroom-tokens", "cloakroom", Some("dev")),
        ]);
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        Plan::new(&files, &packages)
    }

    fn names(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_changed_crate_is_checked_with_those_that_use_it_directly() {
        let plan = plan(&["crates/cloakroom-tokens/src/lib.rs"]);

        assert_eq!(plan.changed, names(&["cloakroom-tokens"]));
        assert_eq!(plan.dependents, names(&["cloakroom-proxy"]));
    }

    #[test]
    fn a_file_that_is_compiled_into_a_crate_changes_that_crate() {
        assert_eq!(
            plan(&["docs/api/openapi.json"]).changed,
            names(&["cloakroom"])
        );
        assert_eq!(plan(&["Cargo.lock"]).changed.len(), 4);
    }

    #[test]
    fn pages_need_no_crate() {
        let plan = plan(&["docs/guides/proxy.md", "README.md"]);

        assert_eq!(plan.changed, names(&[]));
        assert_eq!(plan.pages, ["docs/guides/proxy.md"]);
    }
}
