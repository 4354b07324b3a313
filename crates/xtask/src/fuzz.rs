//! Fuzzes every parser of client input for a given time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use cloakroom_devtools::{process, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this target, a file in fuzz/targets
    target: Option<String>,
    /// Duration per target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let targets = choose(arguments.target.as_deref())?;
    require_tools()?;
    for target in targets {
        println!("\n== {target}, {} seconds", arguments.seconds);
        let found = workspace::root().join("fuzz/found").join(&target);
        std::fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
        process::run_successfully(fuzz(&target, arguments.seconds, &found))
            .with_context(|| format!("{target} failed: see fuzz/artifacts/{target}"))?;
    }
    Ok(())
}

/// Runs one target. New inputs go to the first folder, which is not committed. The seeds in `fuzz/corpus` are read only.
fn fuzz(target: &str, seconds: u32, found: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root().join("fuzz"));
    command.args(["fuzz", "run", "--fuzz-dir", "."]);
    // Sanitizers find memory errors, which safe code does not have, and need a nightly compiler.
    command.args(["--sanitizer", "none", target]);
    command.arg(found).arg(format!("corpus/{target}"));
    command.args(["--", &format!("-max_total_time={seconds}")]);
    // Exceeding these limits is a finding.
    command.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
    command
}

fn choose(only: Option<&str>) -> Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/targets");
    let mut known = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        known.extend(
            path.file_stem()
                .and_then(|name| Some(name.to_str()?.to_owned())),
        );
    }
    known.sort();
    match only {
        None => Ok(known),
        Some(only) if known.iter().any(|name| name == only) => Ok(vec![only.to_owned()]),
        Some(only) => bail!(
            "there is no target {only}; the targets are {}",
            known.join(", ")
        ),
    }
}

fn require_tools() -> Result<()> {
    if !workspace::has_program("cargo-fuzz") {
        bail!("fuzzing needs cargo-fuzz: `cargo install cargo-fuzz`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name() {
        assert_eq!(choose(Some("heads")).unwrap(), ["heads"]);
        assert!(choose(None).unwrap().len() > 10);
        assert!(
            choose(Some("tails"))
                .unwrap_err()
                .to_string()
                .contains("heads")
        );
    }
}
