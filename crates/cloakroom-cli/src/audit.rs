//! The record of what was done, examined: `cloakroom audit verify`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use cloakroom::Vault;
use cloakroom::audit::{self, Anchor, Verified};
use cloakroom::config::Config;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::manage::open;

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Find records that were changed, moved, added or taken away
    Verify(VerifyArguments),
}

#[derive(Args)]
pub(crate) struct VerifyArguments {
    /// Compare with how far records reached at an earlier examination
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Write down how far records reach now; keep it away from the database
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
    Ok(tell(&verified, since.is_some()))
}

fn read_anchor(file: &Path) -> anyhow::Result<Anchor> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} was not written by --remember", file.display()))
}

async fn verify(vault: &Vault, since: Option<&Anchor>) -> anyhow::Result<Verified> {
    let progress = match std::io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    progress.enable_steady_tick(Duration::from_millis(100));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
        progress.set_style(style);
    }
    let verified = audit::verify(vault, since, |records| {
        progress.set_message(format!("{} records", HumanCount(records)));
    })
    .await?;
    progress.finish_and_clear();
    Ok(verified)
}

fn tell(verified: &Verified, is_anchored: bool) -> ExitCode {
    let (records, chains) = (HumanCount(verified.records), verified.chains);
    say!(
        "{records} records in {chains} chains of {} days",
        verified.days
    );
    for finding in &verified.findings {
        say!("  {finding}");
    }
    let untold = verified.finding_count - verified.findings.len() as u64;
    if untold > 0 {
        say!("  and {} more", HumanCount(untold));
    }
    if verified.finding_count > 0 {
        say!(
            "someone has changed the record: {} findings",
            verified.finding_count
        );
        return ExitCode::FAILURE;
    }
    say!("nothing was changed, moved, added or taken away");
    if !is_anchored {
        say!(
            "whoever can write to the database could still have put an older state of it back: \
             compare with an earlier examination by --remember and --since"
        );
    }
    ExitCode::SUCCESS
}
