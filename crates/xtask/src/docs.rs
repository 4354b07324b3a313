//! Builds the documentation site from docs/, and checks its links.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cloakroom_devtools::{packages, process, workspace};

/// Builds the site in docs/.vitepress/dist. The build prints the number of pages and links, and fails on dead links,
/// outdated pictures and requests to other hosts.
pub(crate) fn run() -> Result<()> {
    let folder = workspace::root().join("docs");
    install(&folder)?;
    let mut build = Command::new("npm");
    build.args(["run", "--silent", "build"]).current_dir(folder);
    process::run_successfully(build)
}

/// Installs the packages of the lock file, unless they are installed.
fn install(folder: &Path) -> Result<()> {
    if !workspace::has_program("node") || !workspace::has_program("npm") {
        packages::install(&["nodejs", "npm"])?;
    }
    let lock = fs::read(folder.join("package-lock.json"))?;
    let stamp = folder.join("node_modules/installed-from");
    if fs::read(&stamp).is_ok_and(|from| from == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.arg("ci").current_dir(folder);
    process::run_successfully(npm)?;
    fs::write(&stamp, lock).with_context(|| stamp.display().to_string())
}
