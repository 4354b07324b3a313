//! Builds the crate `cloakroom-bench` and runs it.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use cloakroom_devtools::{process, workspace};

/// Arguments that are passed on; `--help` describes them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

/// Runs a command of `cloakroom-bench`.
pub(crate) fn run(command: &str, arguments: Arguments) -> Result<ExitCode> {
    let mut program = program()?;
    program.arg(command).args(arguments.arguments);
    let status = process::run(program)?;
    Ok(ExitCode::from(process::exit_code(status)))
}

/// Builds `cloakroom-bench`.
///
/// `cargo run --package` would enable fewer features of its dependencies than the build of the whole workspace, and
/// compile them again. The example is needed for the same reason: it enables the features of dev-dependencies, as tests
/// do.
pub(crate) fn program() -> Result<Command> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--locked", "--workspace"]);
    cargo.args(["--bin=cloakroom-bench", "--example=hello"]);
    process::run_successfully(cargo)?;
    Ok(Command::new(workspace::built("cloakroom-bench")?))
}
