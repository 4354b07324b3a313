//! The part of `cloakroom audit verify` that compares tokens with the audit log.

use std::io::IsTerminal as _;
use std::time::Duration;

use cloakroom::Vault;
use cloakroom::tokens::{HistoryReport, Scope, verify_histories};
use indicatif::{HumanCount, ProgressBar};

/// Compares all tokens with the audit log and prints the differences.
pub(crate) async fn verify(vault: &Vault) -> anyhow::Result<HistoryReport> {
    let progress = match std::io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    progress.enable_steady_tick(Duration::from_millis(100));
    let report = verify_histories(vault, Scope::All, |tokens| {
        progress.set_message(format!("{} tokens", HumanCount(tokens)));
    })
    .await?;
    progress.finish_and_clear();
    for finding in &report.findings {
        print_text!("  {finding}");
    }
    let omitted = report.finding_count - report.findings.len() as u64;
    if omitted > 0 {
        print_text!("  and {} more", HumanCount(omitted));
    }
    let tokens = HumanCount(report.tokens);
    match report.finding_count {
        0 => print_text!("{tokens} tokens match their entries"),
        count => print_text!("{count} of {tokens} tokens do not match their entries"),
    }
    Ok(report)
}
