//! The official SDKs: how each is installed, and how its suite is run.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::say;
use crate::{packages, process, workspace};

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Sdk {
    Node,
    Python,
}

impl Sdk {
    pub(super) const ALL: [Self; 2] = [Self::Node, Self::Python];

    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Node => "@basis-theory/node-sdk",
            Self::Python => "BasisTheoryClient",
        }
    }

    /// Installs what the suite's lock file names, unless that has been done.
    pub(super) fn install(self, folder: &Path) -> Result<()> {
        let lock = fs::read(self.lock_file())?;
        let stamp = self.installed(folder).join("installed-from");
        if fs::read(&stamp).is_ok_and(|from| from == lock) && self.runs(folder) {
            say(&format!("{} is installed", self.package()));
            return Ok(());
        }
        say(&format!("installing {}", self.package()));
        match self {
            Self::Node => install_node()?,
            Self::Python => install_python(folder)?,
        }
        fs::write(&stamp, lock).with_context(|| stamp.display().to_string())
    }

    /// The command that runs the suite; its environment has yet to say where the vault is.
    pub(super) fn suite(self, folder: &Path) -> Command {
        let mut command = match self {
            Self::Node => {
                let mut node = Command::new("node");
                node.args(["--test", "--test-reporter=spec"]);
                node
            }
            Self::Python => {
                let mut python = Command::new(python(folder));
                python.args(["-m", "pytest", "--quiet"]);
                // Nothing is left behind between the sources.
                python.env("PYTHONDONTWRITEBYTECODE", "1");
                python
            }
        };
        // The vault is on this machine: no proxy stands between.
        command
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            .current_dir(self.sources());
        command
    }

    fn sources(self) -> PathBuf {
        workspace::root().join("conformance").join(self.to_string())
    }

    fn lock_file(self) -> PathBuf {
        self.sources().join(match self {
            Self::Node => "package-lock.json",
            Self::Python => "requirements.txt",
        })
    }

    /// Node finds packages only beside the sources that use them; git ignores them there.
    fn installed(self, folder: &Path) -> PathBuf {
        match self {
            Self::Node => self.sources().join("node_modules"),
            Self::Python => folder.join("python"),
        }
    }

    fn runs(self, folder: &Path) -> bool {
        match self {
            Self::Node => workspace::has_program("node"),
            Self::Python => python(folder).exists(),
        }
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Python => "python",
        })
    }
}

fn install_node() -> Result<()> {
    if !workspace::has_program("node") || !workspace::has_program("npm") {
        packages::install(&["nodejs", "npm"])?;
    }
    let mut npm = Command::new("npm");
    npm.arg("ci").current_dir(Sdk::Node.sources());
    process::run_well(npm)
}

fn install_python(folder: &Path) -> Result<()> {
    if !can_make_environments() {
        packages::install(&["python3", "python3-venv"])?;
    }
    let mut environment = Command::new("python3");
    environment
        .args(["-m", "venv", "--clear"])
        .arg(Sdk::Python.installed(folder));
    process::run_well(environment)?;

    let mut pip = Command::new(python(folder));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check"])
        .args(["--quiet", "--require-hashes", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(Sdk::Python.lock_file());
    process::run_well(pip)
}

fn can_make_environments() -> bool {
    let mut python = Command::new("python3");
    python
        .args(["-c", "import ensurepip, venv"])
        .stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn python(folder: &Path) -> PathBuf {
    Sdk::Python.installed(folder).join("bin/python")
}
