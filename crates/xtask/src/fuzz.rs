//! Throws mutated input at every parser of what strangers send, for as long as it is told to.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this target, a file in fuzz/targets
    target: Option<String>,
    /// How long each target runs
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
        process::run_well(fuzz(&target, arguments.seconds, &found))
            .with_context(|| format!("{target} found something: see fuzz/artifacts/{target}"))?;
    }
    Ok(())
}

/// Runs one target. What it finds on the way goes to the first folder, which is not kept; the seeds in
/// `fuzz/corpus` are only read.
fn fuzz(target: &str, seconds: u32, found: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root().join("fuzz"));
    command.args(["fuzz", "run", "--fuzz-dir", "."]);
    // Sanitizers look for what safe code cannot do, and need another compiler than the workspace's.
    command.args(["--sanitizer", "none", target]);
    command.arg(found).arg(format!("corpus/{target}"));
    command.args(["--", &format!("-max_total_time={seconds}")]);
    // A request that takes longer than this, or holds more than this, is a finding too.
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
        Some(only) => bail!("no target is called {only}; there are {}", known.join(", ")),
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
    fn a_target_is_chosen_by_its_name() {
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
