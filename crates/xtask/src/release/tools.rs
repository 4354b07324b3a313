//! The programs that build and check the artifacts of a release.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cloakroom_devtools::{packages, process, workspace};

use crate::cargo_tools::CargoTool;

/// Programs and their Debian packages.
const PROGRAMS: [(&str, &str); 16] = [
    ("/usr/lib/podman/aardvark-dns", "aardvark-dns"),
    ("/usr/lib/podman/netavark", "netavark"),
    ("buildah", "buildah"),
    ("envsubst", "gettext-base"),
    // netavark runs it, and does not depend on it.
    ("iptables", "iptables"),
    ("lintian", "lintian"),
    ("minisign", "minisign"),
    ("mmdebstrap", "mmdebstrap"),
    ("podman", "podman"),
    ("python3", "python3-venv"),
    ("rpm", "rpm"),
    ("runc", "runc"),
    ("shellcheck", "shellcheck"),
    ("skopeo", "skopeo"),
    ("strip", "binutils"),
    ("systemd-analyze", "systemd"),
];

const SBOM_TOOL: CargoTool = CargoTool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
};

pub(super) struct Tools {
    path: OsString,
}

impl Tools {
    /// Installs missing programs: Debian's with apt-get, the others below the target folder.
    pub(super) fn install() -> Result<Self> {
        packages::require(&PROGRAMS)?;
        let folder = workspace::target_folder().join("tools");
        let environment = folder.join("packaging");
        let requirements = workspace::root().join("packaging/requirements.txt");
        // Copied last: an interrupted installation is repeated, and so is one of other versions.
        let installed = environment.join("requirements.txt");
        let wanted = std::fs::read(&requirements)?;
        if std::fs::read(&installed).ok().as_ref() != Some(&wanted) {
            install_environment(&environment, &requirements)?;
            std::fs::write(installed, wanted)?;
        }
        let path = SBOM_TOOL.search_path()?;
        let folders = std::iter::once(environment.join("bin"));
        let all = folders.chain(std::env::split_paths(&path));
        Ok(Self {
            path: std::env::join_paths(all)?,
        })
    }

    /// `program`, which finds the tools on its path.
    pub(super) fn command(&self, program: &Path) -> Result<Command> {
        let program = match program.components().count() {
            1 => self.find(program)?,
            _ => program.to_owned(),
        };
        let mut command = Command::new(program);
        command
            .env("PATH", &self.path)
            .current_dir(workspace::root());
        Ok(command)
    }

    /// The path of this process, not of the command, would be searched otherwise.
    fn find(&self, name: &Path) -> Result<std::path::PathBuf> {
        std::env::split_paths(&self.path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
            .with_context(|| format!("{} is not installed", name.display()))
    }
}

fn install_environment(environment: &Path, requirements: &Path) -> Result<()> {
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--clear"]).arg(environment);
    process::run_successfully(python)?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check"])
        .args(["--quiet", "--require-hashes", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(requirements);
    process::run_successfully(pip)
}
