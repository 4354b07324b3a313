//! `cloakroom config`: validates and documents settings.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use cloakroom::config::{self, Config, Finding};
use cloakroom::crypto_inventory::list_certificates;
use cloakroom::rate_limits::Table;
use serde_json::{Value, json};

use crate::output::print_result;

/// Severity of a finding that makes the configuration invalid.
const ERROR: &str = "error";

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
    let config = match load(path) {
        Ok(config) => config,
        Err(error) => {
            let finding = json!({"severity": "error", "finding": error});
            let object = json!({"valid": false, "complete": false, "findings": [finding]});
            print_result(&object, &[error]);
            return Ok(ExitCode::FAILURE);
        }
    };
    let findings = find(&config, path);
    let is_valid = findings.iter().all(|(severity, _)| *severity != ERROR);
    let is_complete = config.database.url.is_some() && config.root_key.is_complete();
    let mut lines: Vec<String> = findings
        .iter()
        .map(|(severity, finding)| format!("{severity}: {finding}"))
        .collect();
    if is_valid {
        let line = match is_complete {
            true => "the configuration is valid",
            false => {
                "the configuration is valid, but incomplete: a node needs `database.url` and the settings of its root key"
            }
        };
        lines.push(line.to_owned());
    }
    let findings: Vec<Value> = findings
        .iter()
        .map(|(severity, finding)| json!({"severity": severity, "finding": finding}))
        .collect();
    let object = json!({"valid": is_valid, "complete": is_complete, "findings": findings});
    print_result(&object, &lines);
    Ok(match is_valid && is_complete {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Reads the configuration and the file of rate limits.
fn load(path: Option<&Path>) -> Result<Config, String> {
    let config = Config::load(path).map_err(|error| error.to_string())?;
    Table::load(&config.limits).map_err(|error| error.to_string())?;
    Ok(config)
}

/// Errors and warnings, with their severity.
fn find(config: &Config, path: Option<&Path>) -> Vec<(&'static str, String)> {
    let mut findings = config.check();
    findings.extend(config.check_files(path));
    let severity = |finding: &Finding| match finding.is_error() {
        true => ERROR,
        false => "warning",
    };
    let (_, certificates) = list_certificates(config);
    let findings = findings.iter().map(|it| (severity(it), it.to_string()));
    let certificates = certificates.iter().map(|it| (ERROR, it.to_string()));
    findings.chain(certificates).collect()
}
