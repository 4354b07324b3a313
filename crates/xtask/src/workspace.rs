//! Where the workspace is, and how its tools are called.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

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

/// A program that `cargo build --workspace --all-targets` has made, for whoever must not build once more: a single
/// package gets other features of its libraries, and all of them would be built again.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    let program = debug_folder().join(name);
    ensure!(
        program.is_file(),
        "there is no {}: first run cargo build --workspace --all-targets",
        program.display()
    );
    Ok(program)
}

/// Where cargo puts what it builds in the dev profile.
fn debug_folder() -> PathBuf {
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
