//! Files generated from the code, by the `cloakroom` command, and from the tests.

mod coverage;
mod covers;
mod rules;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use cloakroom_devtools::workspace;

use crate::{engines, programs};
use coverage::Coverage;

/// Files generated from the code, and the arguments of `cloakroom` that print them.
const GENERATED: [(&str, &[&str]); 8] = [
    ("docs/api/deprecations.md", &["deprecations", "--markdown"]),
    ("docs/api/errors.md", &["errors"]),
    ("docs/api/openapi.json", &["openapi"]),
    ("docs/api/permissions.md", &["permissions"]),
    ("docs/api/threeds.md", &["threeds-rules"]),
    ("docs/operate/cli.md", &["cli-reference"]),
    ("docs/operate/configuration.md", &["config", "reference"]),
    ("docs/operate/metrics.md", &["metrics"]),
];
/// Generated from the rules and the tests that cover them.
const COVERAGE: &str = "docs/api/coverage.md";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only compare with the committed files
    #[arg(long)]
    check: bool,
    /// Only list the rules that no test covers
    #[arg(long, conflicts_with = "check")]
    unmapped: bool,
    /// Only the page on distributed engines, which does not need a full build
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
        let program = programs::build("cloakroom")?;
        for (file, words) in GENERATED {
            compare(file, &print(&program, words)?)?;
        }
        compare(COVERAGE, &Coverage::read(&workspace::root())?.table()?)?;
    }
    compare(engines::PAGE, &engines::page()?)?;
    if stale.is_empty() {
        return Ok(());
    }
    bail!("outdated: {}; run cargo xtask generate", stale.join(", "))
}

fn print(program: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(words)
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!(
            "cloakroom {} failed: {}: {}",
            words.join(" "),
            output.status,
            message.trim()
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
