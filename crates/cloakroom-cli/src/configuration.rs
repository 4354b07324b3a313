//! `cloakroom config`: validates and documents settings.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use cloakroom::config::{self, Config, Finding};
use cloakroom::crypto_inventory::list_certificates;
use cloakroom::rate_limits::Table;

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Validate the configuration
    Check,
    /// Print every setting with its default and description, as Markdown
    Reference,
    /// Print a sample configuration file
    Sample,
}

/// Must be called within a Tokio runtime.
pub(crate) fn run(command: &ConfigCommand, path: Option<&Path>) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Reference => print_line!("{}", config::reference().trim_end()),
        ConfigCommand::Sample => print_line!("{}", config::sample().trim_end()),
        ConfigCommand::Check => return check(path),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(error) => {
            print_line!("{error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Err(error) = Table::load(&config.limits) {
        print_line!("{error}");
        return Ok(ExitCode::FAILURE);
    }
    let mut findings = config.check();
    findings.extend(config.check_files(path));
    for finding in &findings {
        let severity = if finding.is_error() {
            "error"
        } else {
            "warning"
        };
        print_line!("{severity}: {finding}");
    }
    let (_, errors) = list_certificates(&config);
    for error in &errors {
        print_line!("error: {error}");
    }
    if findings.iter().any(Finding::is_error) || !errors.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if config.database.url.is_none() || !config.root_key.is_complete() {
        print_line!(
            "the configuration is valid, but incomplete: a node needs `database.url` and the settings of its root key"
        );
        return Ok(ExitCode::FAILURE);
    }
    print_line!("the configuration is valid");
    Ok(ExitCode::SUCCESS)
}
