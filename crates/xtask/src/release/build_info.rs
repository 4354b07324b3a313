//! What a release was built from and with, so that others can build the same.

use std::process::Command;

use anyhow::{Result, ensure};
use cloakroom_devtools::workspace;

use super::{Release, git};

/// Debian packages whose versions change the artifacts.
const PACKAGES: [&str; 8] = [
    "binutils",
    "buildah",
    "dpkg",
    "gcc",
    "gzip",
    "libc6-dev",
    "mmdebstrap",
    "tar",
];

/// Writes commit, folder, compiler and tools. The folder is part of the names of functions, which the profile refers to.
pub(super) fn write(release: &Release) -> Result<()> {
    let packages = output(
        Command::new("dpkg-query")
            .args(["--show", "--showformat", "  ${Package} ${Version}\\n"])
            .args(PACKAGES),
    )?;
    let compiler = output(
        Command::new("rustc")
            .args(["--version", "--verbose"])
            .current_dir(workspace::root()),
    )?;
    let text = format!(
        "version: {}\ncommit: {}\nfolder: {}\ntime: {}\ncompiler:\n{}packages:\n{packages}\
         other tools: packaging/requirements.txt of the commit\n",
        release.version,
        git(&["rev-parse", "HEAD"])?.trim(),
        workspace::root().canonicalize()?.display(),
        release.epoch,
        indent(&compiler),
    );
    let name = format!("cloakroom-{}.buildinfo", release.version);
    std::fs::write(release.out.join(name), text)?;
    Ok(())
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
