//! `cloakroom audit`: verifies the audit log.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use cloakroom::Vault;
use cloakroom::audit::{self, Anchor, VerificationReport};
use cloakroom::config::Config;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::histories;
use crate::manage::open;

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Detect entries that were modified, moved, added or deleted
    Verify(VerifyArguments),
}

#[derive(Args)]
pub(crate) struct VerifyArguments {
    /// Compare with the anchor file of an earlier verification
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Write an anchor file with the current state; store it apart from the database
    #[arg(long, value_name = "FILE")]
    remember: Option<PathBuf>,
}

pub(crate) async fn run(config: Config, command: AuditCommand) -> anyhow::Result<ExitCode> {
    let AuditCommand::Verify(arguments) = command;
    let since = arguments.since.as_deref().map(read_anchor).transpose()?;
    let vault = open(config).await?;
    let verified = verify(&vault, since.as_ref()).await?;
    if let Some(file) = &arguments.remember {
        let text = serde_json::to_string(&verified.anchor)?;
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let exit_code = report(&verified, since.is_some());
    match histories::verify(&vault).await? {
        true => Ok(exit_code),
        false => Ok(ExitCode::FAILURE),
    }
}

pub(crate) fn read_anchor(file: &Path) -> anyhow::Result<Anchor> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not an anchor file of --remember", file.display()))
}

async fn verify(vault: &Vault, since: Option<&Anchor>) -> anyhow::Result<VerificationReport> {
    let progress = match std::io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    progress.enable_steady_tick(Duration::from_millis(100));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
        progress.set_style(style);
    }
    let verified = audit::verify(&vault.audit, since, |records| {
        progress.set_message(format!("{} entries", HumanCount(records)));
    })
    .await?;
    progress.finish_and_clear();
    Ok(verified)
}

fn report(verified: &VerificationReport, is_anchored: bool) -> ExitCode {
    let (entries, chains) = (HumanCount(verified.records), verified.chains);
    print_line!(
        "{entries} entries in {chains} chains of {} days",
        verified.days
    );
    for finding in &verified.findings {
        print_line!("  {finding}");
    }
    let omitted = verified.finding_count - verified.findings.len() as u64;
    if omitted > 0 {
        print_line!("  and {} more", HumanCount(omitted));
    }
    if verified.finding_count > 0 {
        print_line!(
            "the audit log was tampered with: {} findings",
            verified.finding_count
        );
        return ExitCode::FAILURE;
    }
    print_line!("no entry was modified, moved, added or deleted");
    if !is_anchored {
        print_line!(
            "this does not detect a rollback of the whole database to an older state: \
             store an anchor with --remember and compare with --since"
        );
    }
    ExitCode::SUCCESS
}
