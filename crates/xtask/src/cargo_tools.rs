//! Subcommands of cargo that this program needs: one that is installed, or one built once below the target folder.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cloakroom_devtools::{process, workspace};

/// Compiling with the settings of the tools themselves takes longer, for programs that run a second.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

pub(crate) struct CargoTool {
    /// The crate and its program, such as `cargo-deny`.
    pub name: &'static str,
    pub version: &'static str,
}

impl CargoTool {
    /// A search path on which cargo finds the tool, of any version if one is installed.
    pub(crate) fn search_path(&self) -> Result<OsString> {
        match workspace::has_program(self.name) {
            true => Ok(std::env::var_os("PATH").unwrap_or_default()),
            false => self.search_path_of_version(),
        }
    }

    /// A search path on which cargo finds this version of the tool first.
    pub(crate) fn search_path_of_version(&self) -> Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.install()?);
        Ok(std::env::join_paths(
            folders.chain(std::env::split_paths(&path)),
        )?)
    }

    /// Builds the tool unless that was done before. Returns the folder of the program.
    fn install(&self) -> Result<PathBuf> {
        let Self { name, version } = self;
        let root = workspace::target_folder()
            .join("tools")
            .join(format!("{name}-{version}"));
        let folder = root.join("bin");
        if folder.join(name).is_file() {
            return Ok(folder);
        }
        println!("xtask: building {name} {version}, once: up to some minutes on two cores");
        let mut cargo = workspace::cargo();
        cargo.args(["install", "--quiet", "--locked", name]);
        cargo.args(["--version", version]).arg("--root").arg(root);
        // Built in a temporary folder, which cargo deletes afterwards.
        cargo.env_remove("CARGO_TARGET_DIR").envs(PROFILE);
        process::run_successfully(cargo).with_context(|| format!("installing {name}"))?;
        Ok(folder)
    }
}
