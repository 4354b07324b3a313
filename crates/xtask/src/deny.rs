//! Checks dependencies against deny.toml with cargo-deny: licenses, sources, banned and duplicate crates.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloakroom_devtools::{process, workspace};

const VERSION: &str = "0.20.2";

/// Entries of deny.toml that no dependency needs any more are errors. cargo-deny only warns about them.
const UNUSED_ENTRIES: [&str; 4] = [
    "license-exception-not-encountered",
    "license-not-encountered",
    "unmatched-skip",
    "unnecessary-skip",
];

/// Compiling with the settings of cargo-deny takes half as long again, for a check that runs a second.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also check for known vulnerabilities; downloads the RustSec advisory database
    #[arg(long)]
    advisories: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = workspace::cargo();
    // Run by cargo, which looks for subcommands on the path first: a cargo-deny that is installed already is used.
    if !workspace::has_program("cargo-deny") {
        let folder = install()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders)?);
    }
    command.args(["deny", "--locked", "check"]);
    for code in UNUSED_ENTRIES {
        command.args(["--deny", code]);
    }
    command.args(["bans", "licenses", "sources"]);
    if arguments.advisories {
        command.arg("advisories");
    }
    process::run_successfully(command)
}

/// Builds cargo-deny below the target folder, unless it is there, and returns the folder of the program.
fn install() -> Result<PathBuf> {
    let root = workspace::target_folder()
        .join("tools")
        .join(format!("cargo-deny-{VERSION}"));
    let folder = root.join("bin");
    if folder.join("cargo-deny").is_file() {
        return Ok(folder);
    }
    println!("deny: building cargo-deny {VERSION}, once: about two minutes on two cores");
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--locked", "cargo-deny"]);
    cargo.args(["--version", VERSION]).arg("--root").arg(root);
    // Built in a temporary folder, which cargo deletes afterwards.
    cargo.env_remove("CARGO_TARGET_DIR").envs(PROFILE);
    process::run_successfully(cargo).context("installing cargo-deny")?;
    Ok(folder)
}
