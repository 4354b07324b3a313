//! Fault injection: builds the vault and the crate `cloakroom-faults`, and runs the latter.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use cloakroom_devtools::{packages, process, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run what `cargo build --workspace --bins --examples` has built, instead of building for release
    #[arg(long)]
    built: bool,
    /// Arguments of cloakroom-faults: names of faults, --short, --list, --writes, --mutation, --json; --help explains them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    rest: Vec<OsString>,
}

/// Exit code of cloakroom-faults if the machine failed: `EX_TEMPFAIL` of sysexits.h.
const MACHINE_FAILED: u8 = 75;

/// Programs of the cluster, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 10] = [
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    ("patroni", "patroni"),
    // Lets Patroni use etcd. Patroni's package only suggests it.
    (
        "/usr/lib/python3/dist-packages/etcd/__init__.py",
        "python3-etcd",
    ),
    ("etcd", "etcd-server"),
    ("haproxy", "haproxy"),
    ("redis-server", "redis-server"),
    ("faketime", "faketime"),
    ("ip", "iproute2"),
    ("mkfs.ext4", "e2fsprogs"),
    ("setpriv", "util-linux"),
];

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    packages::require(&PROGRAMS)?;
    let (vault, faults) = if arguments.built {
        (
            workspace::built("cloakroom")?,
            workspace::built("cloakroom-faults")?,
        )
    } else {
        build()?
    };
    let inject = || {
        let mut command = Command::new(&faults);
        command.arg("--binary").arg(&vault);
        command.arg("--workspace").arg(workspace::root());
        command.args(&arguments.rest);
        Ok(process::exit_code(process::run(command)?))
    };
    Ok(ExitCode::from(retry_once(inject)?))
}

/// Runs again if the machine failed, which says nothing about the vault. A violated invariant is never retried.
fn retry_once(mut inject: impl FnMut() -> Result<u8>) -> Result<u8> {
    let code = inject()?;
    if code != MACHINE_FAILED {
        return Ok(code);
    }
    println!("faults: the machine failed, not an invariant; running once more");
    inject()
}

/// Builds the vault and cloakroom-faults together: they need the same features, so no dependency is built twice.
fn build() -> Result<(PathBuf, PathBuf)> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--locked", "--release"]);
    cargo.args(["--package=cloakroom-cli", "--bin=cloakroom"]);
    cargo.args(["--package=cloakroom-faults", "--bin=cloakroom-faults"]);
    process::run_successfully(cargo)?;
    let folder = workspace::release_folder();
    Ok((folder.join("cloakroom"), folder.join("cloakroom-faults")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_repeated_once_and_only_if_the_machine_failed() {
        for (codes, expected) in [
            (vec![0], 0),
            (vec![1], 1),
            (vec![75, 0], 0),
            (vec![75, 1], 1),
            (vec![75, 75], 75),
        ] {
            let mut left = codes.iter().copied();
            let code = retry_once(|| Ok(left.next().unwrap())).unwrap();
            assert_eq!((code, left.next()), (expected, None), "{codes:?}");
        }
    }
}
