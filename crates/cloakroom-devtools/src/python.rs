//! Python packages of tests and tools, in virtual environments.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::packages;

/// Installs requirements into a virtual environment below `target`, once, and returns the folder with its programs. A lock
/// file guards the installation, because tests run in parallel processes.
pub fn environment(target: &Path, name: &str, requirements: &Path) -> Result<PathBuf> {
    let environment = target.join(name);
    let expected = std::fs::read(requirements)?;
    std::fs::create_dir_all(target)?;
    let lock = std::fs::File::create(target.join(format!("{name}.lock")))?;
    lock.lock()?;
    let installed = environment.join("installed-requirements.txt");
    if std::fs::read(&installed).is_ok_and(|installed| installed == expected) {
        return Ok(environment.join("bin"));
    }
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--clear"]).arg(&environment);
    if !python.status().is_ok_and(|status| status.success()) {
        packages::install(&["python3", "python3-venv"])?;
        ensure!(python.status()?.success(), "python3 -m venv failed");
    }
    let pip = Command::new(environment.join("bin/python"))
        .args(["-m", "pip", "install", "--disable-pip-version-check"])
        .args(["--quiet", "--require-hashes", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(requirements)
        .status()?;
    ensure!(pip.success(), "pip install failed");
    std::fs::write(installed, expected)?;
    Ok(environment.join("bin"))
}
