//! The program that ships: built once to be watched at work, and once more by what was seen.
//!
//! A request runs through thousands of small functions, which no processor keeps close by all at once. The compiler
//! puts those together that are used together, once it knows which these are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{bench, packages, process, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long the first build is asked for each kind of request
    #[arg(long, default_value_t = 8)]
    seconds: u32,
}

/// Debian's package that has the tool if the compiler's own is not installed. It reads what newer compilers write.
const TOOL: (&str, &str) = ("llvm-profdata-19", "llvm-19");

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let compiler = Compiler::ask()?;
    let tool = compiler.profile_tool()?;
    let folder = workspace::target_folder().join("trained");
    let (seen, profile) = (folder.join("seen"), folder.join("cloakroom.profdata"));
    if seen.exists() {
        std::fs::remove_dir_all(&seen)?;
    }

    println!("dist: 1 of 4, building a program that counts what it does");
    let program = compiler.build(&folder, &flag("profile-generate", &seen))?;
    println!("dist: 2 of 4, watching it at work");
    bench::exercise(&program, arguments.seconds)?;
    println!("dist: 3 of 4, putting together what was seen");
    let mut merge = Command::new(tool);
    merge.args(["merge", "-o"]).arg(&profile).arg(&seen);
    process::run_well(merge)?;
    println!("dist: 4 of 4, building the program by that");
    let program = compiler.build(&folder, &flag("profile-use", &profile))?;
    // Where the profile by itself puts it.
    let place = workspace::target_folder().join("dist");
    std::fs::create_dir_all(&place)?;
    std::fs::copy(program, place.join("cloakroom"))?;
    println!("dist: {}", place.join("cloakroom").display());
    Ok(())
}

fn flag(name: &str, path: &Path) -> String {
    format!("-C{name}={}", path.display())
}

/// The compiler that cargo uses, as far as it matters here.
struct Compiler {
    host: String,
    sysroot: PathBuf,
}

impl Compiler {
    fn ask() -> Result<Self> {
        let version = told(&["--version", "--verbose"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            host: host.context("rustc names no host")?.to_owned(),
            sysroot: told(&["--print", "sysroot"])?.trim().into(),
        })
    }

    /// The compiler's own tool, or the one of Debian.
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
    /// For a named target, because the flag is then not for what runs while building; and both times in the same
    /// way, because functions are found again by names that depend on it.
    fn build(&self, folder: &Path, flag: &str) -> Result<PathBuf> {
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--locked", "--profile=dist"]);
        cargo.args(["--package=cloakroom-cli", "--bin=cloakroom"]);
        cargo.args(["--target", &self.host]);
        cargo.arg("--target-dir").arg(folder).env("RUSTFLAGS", flag);
        process::run_well(cargo)?;
        Ok(folder.join(&self.host).join("dist/cloakroom"))
    }
}

fn told(arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(workspace::root())
        .output()
        .context("asking rustc")?;
    ensure!(
        output.status.success(),
        "rustc ended with {}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}
