//! Packages, archives, images, chart, SBOM, checksums and signature of a release, from a tag or from binaries that are already built.

mod artifacts;
mod build_info;
mod checks;
mod sbom;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::{process, workspace};

use crate::dist;
use tools::Tools;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Binaries to package, one for each architecture. Without it, the checkout must be clean and have the tag of the
    /// version, and the binaries are built: with PGO, and for arm64 if the toolchain has that target
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Version of the release
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Folder for the artifacts; must be empty or missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Build the tag for amd64 only, if the toolchain has no target for arm64
    #[arg(long, conflicts_with = "binary")]
    without_arm64: bool,
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

/// Each builds some of the artifacts, from a binary.
const SCRIPTS: [&str; 3] = ["build-packages.sh", "build-image.sh", "build-dev-image.sh"];
/// Builds those that are the same for every architecture.
const DEPLOY_SCRIPT: &str = "build-deploy.sh";

/// Builds the artifacts of a release.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let tools = Tools::install()?;
    let release = Release::new(arguments)?;
    release.build(&tools)?;
    if let Some(profile) = &release.profile {
        let name = format!("cloakroom-{}.profdata", release.version);
        std::fs::copy(profile, release.out.join(name))?;
    }
    for binary in &release.binaries {
        sbom::write(&tools, &release, binary)?;
    }
    build_info::write(&release)?;
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
    binaries: Vec<PathBuf>,
    /// The profile that the first binary was compiled with, if it was compiled for this release.
    profile: Option<PathBuf>,
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
        let out = out.canonicalize()?;
        let version = arguments.version.clone();
        let (binaries, profile) = match &arguments.binary[..] {
            [] => build_tag(&version, arguments.without_arm64)?,
            binaries => (binaries.to_owned(), None),
        };
        let binaries = binaries.iter().map(|binary| binary.canonicalize());
        Ok(Self {
            binaries: binaries.collect::<Result<_, _>>().context("the binaries")?,
            profile,
            version,
            out,
            epoch: commit_time()?,
        })
    }

    /// Builds packages, archives and images twice and compares them, so that anyone can verify them from the binary.
    fn build(&self, tools: &Tools) -> Result<()> {
        let second = tempfile::tempdir()?;
        for (name, out) in [("first", self.out.as_path()), ("second", second.path())] {
            println!("release: building packages, archives and images, {name} time");
            for binary in &self.binaries {
                for script in SCRIPTS {
                    self.run_script(tools, script, Some(binary), out)?;
                }
            }
            self.run_script(tools, DEPLOY_SCRIPT, None, out)?;
        }
        let count = artifacts::compare(&self.out, second.path())?;
        println!("release: {count} artifacts are the same in both builds");
        Ok(())
    }

    fn run_script(
        &self,
        tools: &Tools,
        script: &str,
        binary: Option<&Path>,
        out: &Path,
    ) -> Result<()> {
        let mut command = tools.command(&packaging(script))?;
        command.args(binary).arg(&self.version).arg(out);
        command.env("SOURCE_DATE_EPOCH", &self.epoch);
        process::run_successfully(command)
    }
}

/// A script of the folder `packaging`.
fn packaging(script: &str) -> PathBuf {
    workspace::root().join("packaging").join(script)
}

/// Builds the binaries of the tag of `version`. Returns them, and the profile of the first one.
fn build_tag(version: &str, without_arm64: bool) -> Result<(Vec<PathBuf>, Option<PathBuf>)> {
    let own = env!("CARGO_PKG_VERSION");
    ensure!(
        version == own,
        "Cargo.toml has the version {own}, not {version}"
    );
    let tag = format!("v{version}");
    let tags = git(&["tag", "--points-at", "HEAD"])?;
    ensure!(
        tags.lines().any(|it| it == tag),
        "the commit does not have the tag {tag}; check it out, or package binaries with --binary"
    );
    let changes = git(&["status", "--porcelain"])?;
    ensure!(changes.is_empty(), "the checkout has changes:\n{changes}");
    // Before the hour that the build takes.
    ensure!(
        cfg!(target_arch = "x86_64"),
        "releases are built on amd64, where the binary for amd64 gets its profile"
    );
    ensure!(
        without_arm64 || dist::can_build_for_arm64()?,
        "the toolchain has no target for arm64: add it with rustup, or use --without-arm64"
    );
    let built = dist::build_with_new_profile()?;
    let mut binaries = vec![built.binary];
    if !without_arm64 {
        binaries.push(dist::build_for_arm64()?);
    }
    Ok((binaries, Some(built.profile)))
}

fn commit_time() -> Result<String> {
    Ok(git(&["log", "-1", "--format=%ct"])?.trim().to_owned())
}

fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    let output = git
        .args(arguments)
        .current_dir(workspace::root())
        .output()?;
    ensure!(
        output.status.success(),
        "git {} failed: {}",
        arguments.join(" "),
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}
