//! Installing Debian's packages, where that is possible and only when something is missing.

use std::process::Command;

use anyhow::{Result, bail};
use nix::unistd::Uid;

use crate::{process, workspace};

/// Installs `packages`, saying so first.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !workspace::has_program("apt-get") || !Uid::effective().is_root() {
        bail!("missing: {names}; install them (on Debian, as root: apt-get install {names})");
    }
    println!("missing: installing Debian's packages {names}");
    process::run_well(apt_get(&["update", "-qq"]))?;
    process::run_well(apt_get(
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
