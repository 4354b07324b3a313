//! Checks dependencies against deny.toml with cargo-deny: licenses, sources, banned and duplicate crates.

use anyhow::Result;
use cloakroom_devtools::{process, workspace};

use crate::cargo_tools::CargoTool;

const TOOL: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
};

/// Entries of deny.toml that no dependency needs any more are errors. cargo-deny only warns about them.
const UNUSED_ENTRIES: [&str; 4] = [
    "license-exception-not-encountered",
    "license-not-encountered",
    "unmatched-skip",
    "unnecessary-skip",
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also check for known vulnerabilities; downloads the RustSec advisory database
    #[arg(long)]
    advisories: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = workspace::cargo();
    command.env("PATH", TOOL.search_path()?);
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
