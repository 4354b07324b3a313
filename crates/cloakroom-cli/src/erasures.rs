//! The ledger of what was erased: `cloakroom erasures write` and `cloakroom erasures apply`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use cloakroom::config::Config;
use cloakroom::erasures::{self, Ledger};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::manage::open;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Subcommand)]
pub(crate) enum ErasuresCommand {
    /// Write down what was deleted, for the day on which a backup is restored
    Write {
        /// How far back: at least to before the oldest backup was made
        #[arg(long, value_name = "NUMBER", default_value_t = 35)]
        days: u32,
        /// Keep it apart from the database and its backups
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Delete again what a restored backup has brought back, before a node starts
    Apply {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) async fn run(config: Config, command: ErasuresCommand) -> anyhow::Result<()> {
    match command {
        ErasuresCommand::Write { days, file } => write(config, days, &file).await,
        ErasuresCommand::Apply { file } => apply(config, &file).await,
    }
}

async fn write(config: Config, days: u32, file: &Path) -> anyhow::Result<()> {
    let vault = open(config).await?;
    let ledger = erasures::write(&vault, DAY * days).await?;
    let text = ledger.to_text(vault.keys.audit())?;
    // Whoever ships the file never finds half of it.
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, text).with_context(|| format!("cannot write {}", fresh.display()))?;
    std::fs::rename(&fresh, file).with_context(|| format!("cannot write {}", file.display()))?;
    let count = HumanCount(ledger.erasures.len() as u64);
    say!("{count} erasures from {} to {}", ledger.from, ledger.to);
    Ok(())
}

async fn apply(config: Config, file: &Path) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let vault = open(config).await?;
    let ledger = Ledger::parse(&text, vault.keys.audit())
        .with_context(|| format!("nothing of {} was applied", file.display()))?;
    let progress = progress(ledger.erasures.len() as u64);
    let applied = erasures::apply(&vault, &ledger, |done| progress.set_position(done)).await;
    progress.finish_and_clear();
    vault.audit.close().await;
    let applied = applied?;
    say!(
        "{} erased again, {} were not there",
        HumanCount(applied.erased),
        HumanCount(applied.absent)
    );
    say!("what was deleted after {} is not in this ledger", ledger.to);
    Ok(())
}

fn progress(length: u64) -> ProgressBar {
    let progress = match std::io::stderr().is_terminal() {
        true => ProgressBar::new(length),
        false => ProgressBar::hidden(),
    };
    let template = "{bar:40} {human_pos} of {human_len}  {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        progress.set_style(style);
    }
    progress
}
