//! Installing missing Debian packages, where that is possible.

use std::process::Command;

use anyhow::{Result, bail};
use nix::unistd::Uid;

use crate::{process, workspace};

/// Installs the packages of missing programs. `programs` are pairs of a program, by name or absolute path, and the
/// package that contains it.
pub fn require(programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs
        .iter()
        .filter(|(program, _)| !workspace::has_program(program));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    match packages[..] {
        [] => Ok(()),
        _ => install(&packages),
    }
}

/// Installs `packages` and reports it first.
pub fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !workspace::has_program("apt-get") || !Uid::effective().is_root() {
        bail!("missing: {names}; install them (on Debian, as root: apt-get install {names})");
    }
    println!("missing: installing Debian packages {names}");
    process::run_successfully(apt_get(&["update", "-qq"]))?;
    process::run_successfully(apt_get(
        &[
            &["install", "-y", "-qq", "--no-install-recommends"],
            packages,
        ]
        .concat(),
    ))
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}
