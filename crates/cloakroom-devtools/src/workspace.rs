//! Folders and programs of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// The folder of the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// The cargo that runs this program, in the folder of the workspace.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// A program or test that was built for development.
pub fn built(name: &str) -> Result<PathBuf> {
    let program = debug_folder().join(name);
    ensure!(
        program.is_file(),
        "there is no {}: first run cargo build --workspace --bins --examples",
        program.display()
    );
    Ok(program)
}

/// Output of the dev profile.
fn debug_folder() -> PathBuf {
    target_folder().join("debug")
}

/// Output of the release profile.
pub fn release_folder() -> PathBuf {
    target_folder().join("release")
}

/// Output of all profiles.
pub fn target_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(target)
}

/// Whether a program is on the path, or exists if `name` is an absolute path.
pub fn has_program(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}
