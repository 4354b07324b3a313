//! The release binary with profile-guided optimization (PGO).
//!
//! A request runs through thousands of small functions, more than fit into the instruction cache. With a profile, the
//! compiler places functions together that are used together.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::{packages, process, workspace};

use crate::cargo_tools::CargoTool;
use crate::programs;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Duration of the profiling load for each kind of request
    #[arg(long, default_value_t = 8)]
    seconds: u32,
    /// Profile of a release. The same commit, folder and toolchain result in the same binary
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Cross-build for arm64 instead, without a profile
    #[arg(long, conflicts_with = "profile")]
    arm64: bool,
}

/// llvm-profdata and its Debian package, if the toolchain has none. It reads profiles of newer compilers.
const PROFILE_TOOL: (&str, &str) = ("llvm-profdata-19", "llvm-19");
/// Embeds the list of dependencies in the binary, where scanners find it.
const AUDITABLE: CargoTool = CargoTool {
    name: "cargo-auditable",
    version: "0.7.7",
};
const ARM64: &str = "aarch64-unknown-linux-gnu";
const ARM64_LINKER: &str = "aarch64-linux-gnu-gcc";
/// Programs for arm64 and their Debian packages. The emulator runs the binary for its man pages.
const ARM64_PROGRAMS: [(&str, &str); 2] = [
    (ARM64_LINKER, "gcc-aarch64-linux-gnu"),
    ("qemu-aarch64-static", "qemu-user-static"),
];
/// The C library that both need.
const ARM64_LIBRARY: (&str, &str) = (
    "/usr/aarch64-linux-gnu/include/stdlib.h",
    "libc6-dev-arm64-cross",
);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let binary = match arguments.arm64 {
        true => build_for_arm64()?,
        false => {
            let profile = match &arguments.profile {
                Some(profile) => profile.canonicalize().context("the profile")?,
                None => record_profile(arguments.seconds)?,
            };
            build(&profile)?.binary
        }
    };
    println!("dist: {}", binary.display());
    Ok(())
}

/// A release binary, and the profile that it was built with.
pub(crate) struct Built {
    pub binary: PathBuf,
    pub profile: PathBuf,
}

/// Records a profile and builds the release binary for this machine.
pub(crate) fn build_with_new_profile() -> Result<Built> {
    const SECONDS: u32 = 8;
    build(&record_profile(SECONDS)?)
}

/// Runs an instrumented binary under load.
fn record_profile(seconds: u32) -> Result<PathBuf> {
    let compiler = Compiler::detect()?;
    let tool = compiler.profile_tool()?;
    let raw = pgo_folder().join("raw");
    if raw.exists() {
        std::fs::remove_dir_all(&raw)?;
    }
    println!("dist: building with instrumentation");
    let program = compiler.build(&flag("profile-generate", &raw))?;
    println!("dist: profiling under load");
    let mut exercise = Command::new(programs::build("cloakroom-bench")?);
    exercise.arg("exercise").arg("--binary").arg(&program);
    exercise.args(["--seconds", &seconds.to_string()]);
    process::run_successfully(exercise)?;
    println!("dist: merging the profiles");
    let profile = pgo_folder().join("recorded.profdata");
    let mut merge = Command::new(tool);
    merge.args(["merge", "-o"]).arg(&profile).arg(&raw);
    process::run_successfully(merge)?;
    Ok(profile)
}

fn build(profile: &Path) -> Result<Built> {
    println!("dist: building with the profile");
    // Always at the same place, because the names of symbols depend on it.
    let used = pgo_folder().join("cloakroom.profdata");
    std::fs::create_dir_all(pgo_folder())?;
    std::fs::copy(profile, &used)?;
    let program = Compiler::detect()?.build(&flag("profile-use", &used))?;
    // Where `cargo build --profile dist` places it.
    let place = workspace::target_folder().join("dist");
    std::fs::create_dir_all(&place)?;
    let binary = place.join("cloakroom");
    std::fs::copy(program, &binary)?;
    Ok(Built {
        binary,
        profile: used,
    })
}

/// Whether the toolchain has the standard library for arm64.
pub(crate) fn can_build_for_arm64() -> Result<bool> {
    let library = Compiler::detect()?.sysroot.join("lib/rustlib").join(ARM64);
    Ok(library.is_dir())
}

pub(crate) fn build_for_arm64() -> Result<PathBuf> {
    ensure!(
        can_build_for_arm64()?,
        "the toolchain lacks {ARM64}; install it with rustup target add {ARM64}"
    );
    packages::require(&ARM64_PROGRAMS)?;
    let (header, package) = ARM64_LIBRARY;
    if !Path::new(header).is_file() {
        packages::install(&[package])?;
    }
    println!("dist: cross-building for arm64");
    let mut cargo = auditable_build(ARM64)?;
    cargo.env(
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
        ARM64_LINKER,
    );
    process::run_successfully(cargo)?;
    let folder = workspace::target_folder().join(ARM64);
    Ok(folder.join("dist/cloakroom"))
}

/// Builds of all targets take the same arguments, because the names of functions in a profile depend on them.
fn auditable_build(target: &str) -> Result<Command> {
    let mut cargo = workspace::cargo();
    cargo.env("PATH", AUDITABLE.search_path_of_version()?);
    // Flags of the caller would replace those of the profile.
    cargo.env_remove("RUSTFLAGS");
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.args(["auditable", "build", "--locked", "--profile=dist"]);
    cargo.args(["--package=cloakroom-cli", "--bin=cloakroom"]);
    // With a target, flags do not apply to build scripts and macros.
    cargo.args(["--target", target]);
    Ok(cargo)
}

fn pgo_folder() -> PathBuf {
    workspace::target_folder().join("pgo")
}

fn flag(name: &str, path: &Path) -> String {
    format!("-C{name}={}", path.display())
}

/// The compiler that cargo uses.
struct Compiler {
    host: String,
    sysroot: PathBuf,
}

impl Compiler {
    fn detect() -> Result<Self> {
        let version = rustc(&["--version", "--verbose"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            host: host.context("rustc reports no host")?.to_owned(),
            sysroot: rustc(&["--print", "sysroot"])?.trim().into(),
        })
    }

    /// llvm-profdata of the toolchain, or of Debian.
    fn profile_tool(&self) -> Result<PathBuf> {
        let own = self.sysroot.join("lib/rustlib").join(&self.host);
        let own = own.join("bin/llvm-profdata");
        if own.exists() {
            return Ok(own);
        }
        let (program, package) = PROFILE_TOOL;
        if !workspace::has_program(program) {
            packages::install(&[package])?;
        }
        Ok(program.into())
    }

    /// Builds the program with one more flag.
    fn build(&self, flag: &str) -> Result<PathBuf> {
        let mut cargo = auditable_build(&self.host)?;
        let folder = pgo_folder();
        cargo
            .arg("--target-dir")
            .arg(&folder)
            .env("RUSTFLAGS", flag);
        process::run_successfully(cargo)?;
        Ok(folder.join(&self.host).join("dist/cloakroom"))
    }
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(workspace::root())
        .output()
        .context("running rustc")?;
    ensure!(output.status.success(), "rustc failed: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
