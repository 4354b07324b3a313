//! Packages, archive, image, SBOM, checksums and signature of a release, from a binary that is already built.

mod artifacts;
mod checks;
mod sbom;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::{process, workspace};

use tools::Tools;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The binary to release; `cargo xtask dist` builds it
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Version of the release
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Folder for the artifacts; must be empty or missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Secret key of minisign. Without it, the checksums are not signed
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    /// Binary to package, instead of the debug build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Builds the artifacts of a release.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let tools = Tools::install()?;
    let release = Release::new(arguments)?;
    release.build(&tools)?;
    sbom::write(&tools, &release)?;
    artifacts::write_checksums(&release.out)?;
    match &arguments.sign_key {
        Some(key) => artifacts::sign(&release, key)?,
        None => println!("release: not signed; --sign-key signs the checksums"),
    }
    artifacts::print_table(&release.out)
}

/// Builds a release with a temporary signing key, and checks and installs its artifacts.
pub(crate) fn check(arguments: &CheckArguments) -> Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => workspace::built("cloakroom")?,
    };
    checks::run(&binary)
}

/// What the artifacts are built from.
struct Release {
    binary: PathBuf,
    version: String,
    out: PathBuf,
    /// Time of the commit, in seconds since 1970: the time of every file in the artifacts.
    epoch: String,
}

impl Release {
    fn new(arguments: &Arguments) -> Result<Self> {
        let out = &arguments.out;
        std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        let is_empty = std::fs::read_dir(out)?.next().is_none();
        ensure!(is_empty, "{} is not empty", out.display());
        Ok(Self {
            binary: arguments.binary.canonicalize().context("the binary")?,
            version: arguments.version.clone(),
            out: out.canonicalize()?,
            epoch: commit_time()?,
        })
    }

    /// Builds packages, archive and image twice and compares them, so that anyone can verify them from the binary.
    fn build(&self, tools: &Tools) -> Result<()> {
        let second = tempfile::tempdir()?;
        for (name, out) in [("first", self.out.as_path()), ("second", second.path())] {
            println!("release: building packages, archive and image, {name} time");
            for script in ["build-packages.sh", "build-image.sh"] {
                self.run_script(tools, script, out)?;
            }
        }
        let count = artifacts::compare(&self.out, second.path())?;
        println!("release: {count} artifacts are the same in both builds");
        Ok(())
    }

    fn run_script(&self, tools: &Tools, script: &str, out: &Path) -> Result<()> {
        let mut command = tools.command(&workspace::root().join("packaging").join(script))?;
        command.arg(&self.binary).arg(&self.version).arg(out);
        command.env("SOURCE_DATE_EPOCH", &self.epoch);
        process::run_successfully(command)
    }
}

fn commit_time() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]);
    let output = git.current_dir(workspace::root()).output()?;
    ensure!(output.status.success(), "git log failed: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
