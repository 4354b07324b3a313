//! `cloakroom doctor`: prints the findings.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use cloakroom::config::Config;
use cloakroom::doctor::{Finding, Severity, diagnose};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};

use crate::output::{is_json, print_json};

#[derive(Args)]
pub(crate) struct DoctorArguments {
    /// Print JSON, as with --output json
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(
    config: &Config,
    path: Option<&Path>,
    arguments: &DoctorArguments,
) -> anyhow::Result<ExitCode> {
    let findings = diagnose(config, path).await;
    match arguments.json || is_json() {
        true => print_json(&findings.iter().map(to_json).collect()),
        false => print_table(&findings),
    }
    let has_errors = findings.iter().any(|it| it.severity == Severity::Bad);
    Ok(match has_errors {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn to_json(finding: &Finding) -> Value {
    let severity = match finding.severity {
        Severity::Good => "ok",
        Severity::Warning => "warning",
        Severity::Bad => "error",
    };
    json!({"severity": severity, "area": finding.area, "finding": finding.what})
}

fn print_table(findings: &[Finding]) {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    for finding in findings {
        let mark = match finding.severity {
            Severity::Good => "ok",
            Severity::Warning => "warn",
            Severity::Bad => "error",
        };
        table.add_row([mark, finding.area, &finding.what]);
    }
    print_line!("{table}");
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (bad, warnings) = (count(Severity::Bad), count(Severity::Warning));
    print_line!(
        "\n{}, {}, {} ok",
        plural(bad, "error"),
        plural(warnings, "warning"),
        count(Severity::Good)
    );
}

fn plural(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
