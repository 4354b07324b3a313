//! `cloakroom doctor`: what is wrong, as a table.

use std::process::ExitCode;

use cloakroom::config::Config;
use cloakroom::doctor::{Verdict, examine};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

pub(crate) async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let findings = examine(config).await;
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    for finding in &findings {
        let mark = match finding.verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warn",
            Verdict::Bad => "BAD",
        };
        table.add_row([mark, finding.area, &finding.what]);
    }
    say!("{table}");
    let count = |verdict| {
        findings
            .iter()
            .filter(|finding| finding.verdict == verdict)
            .count()
    };
    let (bad, warnings) = (count(Verdict::Bad), count(Verdict::Warning));
    say!(
        "\n{bad} to mend, {warnings} to think about, {} fine",
        count(Verdict::Good)
    );
    Ok(if bad == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
