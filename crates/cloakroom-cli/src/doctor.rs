//! `cloakroom doctor`: prints the findings as a table.

use std::path::Path;
use std::process::ExitCode;

use cloakroom::config::Config;
use cloakroom::doctor::{Severity, diagnose};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

pub(crate) async fn run(config: &Config, path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let findings = diagnose(config, path).await;
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    for finding in &findings {
        let mark = match finding.severity {
            Severity::Good => "ok",
            Severity::Warning => "warn",
            Severity::Bad => "BAD",
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
    Ok(if bad == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn plural(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
