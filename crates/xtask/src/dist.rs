//! The release binary with profile-guided optimization (PGO).
//!
//! A request runs through thousands of small functions, more than fit into the instruction cache. With a profile, the
//! compiler places functions together that are used together.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::{packages, process, workspace};

use crate::benchmarks;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Duration of the profiling load for each kind of request
    #[arg(long, default_value_t = 8)]
    seconds: u32,
}

/// The tool and its Debian package, if the toolchain has none. It reads profiles of newer compilers.
const TOOL: (&str, &str) = ("llvm-profdata-19", "llvm-19");

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let compiler = Compiler::detect()?;
    let tool = compiler.profile_tool()?;
    let folder = workspace::target_folder().join("pgo");
    let (raw, profile) = (folder.join("raw"), folder.join("cloakroom.profdata"));
    if raw.exists() {
        std::fs::remove_dir_all(&raw)?;
    }

    println!("dist: 1 of 4, building with instrumentation");
    let program = compiler.build(&folder, &flag("profile-generate", &raw))?;
    println!("dist: 2 of 4, profiling under load");
    let mut exercise = benchmarks::program()?;
    exercise.arg("exercise").arg("--binary").arg(&program);
    exercise.args(["--seconds", &arguments.seconds.to_string()]);
    process::run_successfully(exercise)?;
    println!("dist: 3 of 4, merging the profiles");
    let mut merge = Command::new(tool);
    merge.args(["merge", "-o"]).arg(&profile).arg(&raw);
    process::run_successfully(merge)?;
    println!("dist: 4 of 4, building with the profile");
    let program = compiler.build(&folder, &flag("profile-use", &profile))?;
    // Where `cargo build --profile dist` places it.
    let place = workspace::target_folder().join("dist");
    std::fs::create_dir_all(&place)?;
    std::fs::copy(program, place.join("cloakroom"))?;
    println!("dist: {}", place.join("cloakroom").display());
    Ok(())
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
        let (program, package) = TOOL;
        if !workspace::has_program(program) {
            packages::install(&[package])?;
        }
        Ok(program.into())
    }

    /// Builds the program with one more flag.
    ///
    /// With `--target`, so that the flag does not apply to build scripts and macros. Both builds use the same arguments,
    /// because the names of functions in the profile depend on them.
    fn build(&self, folder: &Path, flag: &str) -> Result<PathBuf> {
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--locked", "--profile=dist"]);
        cargo.args(["--package=cloakroom-cli", "--bin=cloakroom"]);
        cargo.args(["--target", &self.host]);
        cargo.arg("--target-dir").arg(folder).env("RUSTFLAGS", flag);
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
