//! The files that are generated: from the code, by the built `cloakroom` command itself, and from
//! the tests.

mod coverage;
mod covers;
mod rules;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{engines, process, workspace};
use coverage::Coverage;

/// What is generated from the code: the file, and the words after `cloakroom` that print it.
const GENERATED: [(&str, &[&str]); 5] = [
    ("docs/api/deprecations.md", &["deprecations", "--markdown"]),
    ("docs/api/openapi.json", &["openapi"]),
    ("docs/api/permissions.md", &["permissions"]),
    ("docs/api/threeds.md", &["threeds-rules"]),
    ("docs/operate/configuration.md", &["config", "reference"]),
];
/// Generated from the rules beside it and the tests that name them.
const COVERAGE: &str = "docs/api/coverage.md";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only compare with what is there
    #[arg(long)]
    check: bool,
    /// Only list the rules that no test covers
    #[arg(long, conflicts_with = "check")]
    unmapped: bool,
    /// Only what distributed engines accept, which needs no build of everything
    #[arg(long, conflicts_with = "unmapped")]
    engines: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.unmapped {
        print!("{}", Coverage::read(&workspace::root())?.unmapped());
        return Ok(());
    }
    let mut stale = Vec::new();
    let mut compare = |file: &'static str, text: &str| {
        let path = workspace::root().join(file);
        if is_same(&path, text) {
            return Ok(());
        }
        if arguments.check {
            stale.push(file);
            return Ok(());
        }
        println!("writing {file}");
        write(&path, text)
    };
    if !arguments.engines {
        build()?;
        for (file, words) in GENERATED {
            compare(file, &print(words)?)?;
        }
        compare(COVERAGE, &Coverage::read(&workspace::root())?.table()?)?;
    }
    compare(engines::PAGE, &engines::page()?)?;
    if stale.is_empty() {
        return Ok(());
    }
    bail!(
        "not what the code and the tests say: {}; run cargo xtask generate",
        stale.join(", ")
    )
}

fn build() -> Result<()> {
    let mut build = workspace::cargo();
    // The same selection as the pipeline's build, so that nothing is compiled twice.
    build.args([
        "build",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--locked",
    ]);
    process::run_well(build)
}

fn print(words: &[&str]) -> Result<String> {
    let program = workspace::built("cloakroom")?;
    let output = Command::new(&program)
        .args(words)
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "cloakroom {} ended with {}: {}",
            words.join(" "),
            output.status,
            said.trim()
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn is_same(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|found| found == text)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
