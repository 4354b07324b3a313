//! `cloakroom config`: checking and explaining settings.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use cloakroom::config::{self, Config};
use cloakroom::rate_limits::Table;

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Tell what is wrong with the configuration, and where
    Check,
    /// Print every setting with its default and meaning, as Markdown
    Reference,
    /// Print a configuration file to start from
    Sample,
}

pub(crate) fn run(command: &ConfigCommand, path: Option<&Path>) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Reference => say!("{}", config::reference().trim_end()),
        ConfigCommand::Sample => say!("{}", config::sample().trim_end()),
        ConfigCommand::Check => return check(path),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(error) => {
            say!("{error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Err(error) = Table::load(&config.limits) {
        say!("{error}");
        return Ok(ExitCode::FAILURE);
    }
    for finding in config.check() {
        say!("warning: {finding}");
    }
    if config.database.url.is_none() || config.root_key.file.is_none() {
        say!("the configuration is well formed, but a node cannot start with it yet");
        return Ok(ExitCode::FAILURE);
    }
    say!("the configuration can be used");
    Ok(ExitCode::SUCCESS)
}
