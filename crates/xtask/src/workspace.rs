//! Where the workspace is, and how its tools are called.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace's Cargo.toml.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// The cargo that runs this task, in the workspace's folder.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// The vault and the crate that breaks clusters. Together: the features that both need are those of the vault alone,
/// so nothing is built twice and the vault is the one that the short benchmark measures.
pub(crate) const RELEASE_BUILD: &[&str] = &[
    "build",
    "--locked",
    "--release",
    "--package=cloakroom-cli",
    "--bin=cloakroom",
    "--package=cloakroom-faults",
    "--bin=cloakroom-faults",
];

/// Where cargo puts what it builds in the dev profile.
pub(crate) fn debug_folder() -> PathBuf {
    target_folder().join("debug")
}

/// The same for the release profile.
pub(crate) fn release_folder() -> PathBuf {
    target_folder().join("release")
}

/// Where cargo puts everything that it builds.
pub(crate) fn target_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(target)
}

pub(crate) fn has_program(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}
