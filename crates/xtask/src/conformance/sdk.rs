//! The suites: how each is installed and run.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::ValueEnum;
use cloakroom_devtools::{packages, process, workspace};

use super::report_progress;

/// The official SDKs, the browser SDKs in Chromium, the demo shop, and Schemathesis, which tests the OpenAPI description.
/// The longest first, because they run side by side.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Sdk {
    Browser,
    Schemathesis,
    Elements,
    Shop,
    Node,
    Python,
    PythonLegacy,
}

/// The program and its Debian package.
const CHROMIUM: &str = "chromium";

/// Extent of randomized tests.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    pub seed: u64,
    pub is_long: bool,
}

impl Sdk {
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Node => "@basis-theory/node-sdk",
            Self::Browser => "@basis-theory/web-threeds",
            Self::Elements => "@basis-theory/web-elements",
            Self::Shop => "playwright-core",
            Self::Python => "BasisTheoryClient",
            Self::PythonLegacy => "basistheory",
            Self::Schemathesis => "schemathesis",
        }
    }

    /// Whether the suite reports every method of its client. Those of current official clients do.
    pub(super) fn reports_methods(self) -> bool {
        matches!(self, Self::Node | Self::Python)
    }

    /// Whether the suite also needs a vault whose tenant it deletes, and one with rate limits.
    pub(super) fn needs_more_vaults(self) -> bool {
        matches!(self, Self::Node | Self::Python)
    }

    /// Installs the packages of the suite's lock file, unless they are installed.
    pub(super) fn install(self, folder: &Path) -> Result<()> {
        let lock = fs::read(self.lock_file())?;
        let stamp = self.installed(folder).join("installed-from");
        if fs::read(&stamp).is_ok_and(|from| from == lock) && self.runs(folder) {
            report_progress(&format!("{} is installed", self.package()));
            return Ok(());
        }
        report_progress(&format!("installing {}", self.package()));
        match self {
            Self::Node | Self::Browser | Self::Elements => self.install_modules()?,
            Self::Shop => {
                self.install_modules()?;
                install_shop()?;
            }
            Self::Python | Self::PythonLegacy | Self::Schemathesis => {
                self.install_environment(folder)?;
            }
        }
        fs::write(&stamp, lock).with_context(|| stamp.display().to_string())
    }

    /// The command that runs the suite. The caller adds the address of the vault to its environment.
    pub(super) fn suite(self, folder: &Path, effort: Effort) -> Command {
        let mut command = match self {
            Self::Node => Command::new("node"),
            Self::Browser | Self::Elements | Self::Shop => {
                let mut node = Command::new("node");
                // For inspection by a developer.
                node.env("CONFORMANCE_SCREENSHOTS", folder.join(self.to_string()));
                node
            }
            Self::Python | Self::PythonLegacy | Self::Schemathesis => {
                let mut python = Command::new(self.python(folder));
                // No cache files between the sources.
                python.env("PYTHONDONTWRITEBYTECODE", "1");
                python
            }
        };
        match self {
            // Its files have a browser each and mostly wait.
            Self::Elements => {
                command.args(["--test", "--test-reporter=spec", "--test-concurrency=3"])
            }
            Self::Node | Self::Browser | Self::Shop => {
                command.args(["--test", "--test-reporter=spec"])
            }
            Self::Python | Self::PythonLegacy => command.args(["-m", "pytest", "--quiet"]),
            Self::Schemathesis => command.arg("run.py").args(effort.words()),
        };
        // The vault is on this machine: bypass HTTP proxies.
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
            Self::Node | Self::Browser | Self::Elements | Self::Shop => "package-lock.json",
            Self::Python | Self::PythonLegacy | Self::Schemathesis => "requirements.txt",
        })
    }

    /// Node finds packages only beside the sources that use them. Git ignores them.
    fn installed(self, folder: &Path) -> PathBuf {
        match self {
            Self::Node | Self::Browser | Self::Elements | Self::Shop => {
                self.sources().join("node_modules")
            }
            Self::Python | Self::PythonLegacy | Self::Schemathesis => folder.join(self.to_string()),
        }
    }

    fn runs(self, folder: &Path) -> bool {
        match self {
            Self::Node => workspace::has_program("node"),
            Self::Browser => workspace::has_program("node") && workspace::has_program(CHROMIUM),
            Self::Elements => {
                let modules = element_sources().join("node_modules");
                Self::Browser.runs(folder) && modules.exists()
            }
            Self::Shop => {
                let shop = demo_shop();
                let packages = [shop.join("node_modules"), shop.join(".venv")];
                Self::Browser.runs(folder) && packages.iter().all(|packages| packages.exists())
            }
            Self::Python | Self::PythonLegacy | Self::Schemathesis => self.python(folder).exists(),
        }
    }

    /// Each suite has an environment of its own: they need different versions of the same packages.
    fn install_environment(self, folder: &Path) -> Result<()> {
        install_environment(&self.installed(folder), &self.lock_file())
    }

    fn install_modules(self) -> Result<()> {
        if !workspace::has_program("node") || !workspace::has_program("npm") {
            packages::install(&["nodejs", "npm"])?;
        }
        let needs_browser = matches!(self, Self::Browser | Self::Elements | Self::Shop);
        if needs_browser && !workspace::has_program(CHROMIUM) {
            packages::install(&[CHROMIUM])?;
        }
        if self == Self::Elements {
            // The suite also compares the committed bundle with a new build.
            install_lock_file(&element_sources())?;
        }
        install_lock_file(&self.sources())
    }

    fn python(self, folder: &Path) -> PathBuf {
        self.installed(folder).join("bin/python")
    }
}

impl Effort {
    /// One or two minutes in the pipeline, ten beside other work, up to an hour for an extended run.
    fn words(self) -> [String; 3] {
        let (cases, seconds) = if self.is_long {
            (1_000, 3_600)
        } else {
            (40, 1_800)
        };
        [
            format!("--seed={}", self.seed),
            format!("--cases={cases}"),
            format!("--seconds={seconds}"),
        ]
    }
}

/// The name on the command line and of the folder.
impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().ok_or(fmt::Error)?;
        f.write_str(value.get_name())
    }
}

/// Installs the packages of the page and of both servers, as a developer does.
fn install_shop() -> Result<()> {
    let shop = demo_shop();
    install_lock_file(&shop)?;
    install_environment(
        &shop.join(".venv"),
        &shop.join("server/python/requirements.txt"),
    )
}

/// Creates a virtual environment with the packages of `requirements`.
fn install_environment(environment: &Path, requirements: &Path) -> Result<()> {
    if !has_venv() {
        packages::install(&["python3", "python3-venv"])?;
    }
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

fn install_lock_file(folder: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.arg("ci").current_dir(folder);
    process::run_successfully(npm)
}

/// The demo shop.
pub(super) fn demo_shop() -> PathBuf {
    workspace::root().join("examples/shop")
}

/// The sources of web elements.
fn element_sources() -> PathBuf {
    workspace::root().join("web/elements")
}

fn has_venv() -> bool {
    let mut python = Command::new("python3");
    python
        .args(["-c", "import ensurepip, venv"])
        .stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_has_a_folder_with_its_name_and_a_lock_file() {
        for sdk in Sdk::value_variants() {
            let lock = fs::read_to_string(sdk.lock_file());
            assert!(
                lock.is_ok_and(|lock| lock.contains(&sdk.package().to_lowercase())),
                "{sdk}"
            );
        }
    }

    #[test]
    fn the_seed_is_passed_on() {
        let effort = Effort {
            seed: 7,
            is_long: true,
        };

        let suite = Sdk::Schemathesis.suite(Path::new("/x"), effort);

        let words: Vec<_> = suite
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        assert_eq!(words[..2], ["run.py", "--seed=7"]);
        assert_eq!(suite.get_program(), "/x/schemathesis/bin/python");
    }
}
