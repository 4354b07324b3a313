//! Breaking a real cluster: builds the vault and the crate `cloakroom-faults`, and runs the latter.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{packages, process, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run what `cargo build --workspace --all-targets` has made, instead of building for release
    #[arg(long)]
    built: bool,
    /// What is handed on: names of faults, --short, --list, --writes, --sabotage, --json; --help explains them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    rest: Vec<OsString>,
}

/// Programs of the cluster, and Debian's packages that have them.
const NEEDED: [(&str, &str); 8] = [
    ("patroni", "patroni"),
    ("etcd", "etcd-server"),
    ("haproxy", "haproxy"),
    ("redis-server", "redis-server"),
    ("faketime", "faketime"),
    ("ip", "iproute2"),
    ("mkfs.ext4", "e2fsprogs"),
    ("setpriv", "util-linux"),
];
const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";
/// What lets Debian's Patroni speak with etcd; Patroni only suggests it.
const ETCD_CLIENT: &str = "/usr/lib/python3/dist-packages/etcd/__init__.py";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    install_missing()?;
    let (vault, faults) = if arguments.built {
        (
            workspace::built("cloakroom")?,
            workspace::built("cloakroom-faults")?,
        )
    } else {
        build()?
    };
    let mut faults = Command::new(faults);
    faults.arg("--binary").arg(vault);
    faults.arg("--workspace").arg(workspace::root());
    faults.args(arguments.rest);
    let status = process::run(faults)?;
    Ok(ExitCode::from(process::exit_code(status)))
}

/// The vault and what breaks it. Together: the features that both need are those of the vault alone, so nothing is
/// built twice.
fn build() -> Result<(PathBuf, PathBuf)> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--locked", "--release"]);
    cargo.args(["--package=cloakroom-cli", "--bin=cloakroom"]);
    cargo.args(["--package=cloakroom-faults", "--bin=cloakroom-faults"]);
    process::run_well(cargo)?;
    let folder = workspace::release_folder();
    Ok((folder.join("cloakroom"), folder.join("cloakroom-faults")))
}

fn install_missing() -> Result<()> {
    let missing = NEEDED
        .iter()
        .filter(|(program, _)| !workspace::has_program(program));
    let mut missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    for (file, package) in [(POSTGRES, "postgresql-15"), (ETCD_CLIENT, "python3-etcd")] {
        if !std::path::Path::new(file).exists() {
            missing.push(package);
        }
    }
    match missing[..] {
        [] => Ok(()),
        _ => packages::install(&missing),
    }
}
