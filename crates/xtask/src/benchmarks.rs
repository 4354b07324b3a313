//! Builds the crate `cloakroom-bench` and runs it.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use cloakroom_devtools::process;

use crate::programs;

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
    let mut program = Command::new(programs::build("cloakroom-bench")?);
    program.arg(command).args(arguments.arguments);
    let status = process::run(program)?;
    Ok(ExitCode::from(process::exit_code(status)))
}
