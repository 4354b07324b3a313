//! The erasure ledger: `cloakroom erasures write` and `cloakroom erasures apply`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use cloakroom::config::Config;
use cloakroom::erasures::{self, Ledger, Limits};
use cloakroom::tokens::TokenVault;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde_json::json;

use crate::audit::open_checkpoints;
use crate::manage::open;
use crate::output::{print_if_json, print_result};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Subcommand)]
pub(crate) enum ErasuresCommand {
    /// Verify the audit log and write the deletions to a signed ledger
    Write {
        /// Days to go back; must reach back to before the oldest backup
        #[arg(long, value_name = "NUMBER", default_value_t = 35)]
        days: u32,
        /// File of checkpoints that a sink received; also detects a database that was rolled back
        #[arg(long, value_name = "FILE")]
        checkpoints: Option<PathBuf>,
        /// Ledger file; store it apart from the database and its backups
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Repeat the deletions of a ledger on a restored backup; run it before starting a node
    Apply(ApplyArguments),
}

#[derive(Args)]
pub(crate) struct ApplyArguments {
    /// Count what would be deleted, without deleting
    #[arg(long)]
    dry_run: bool,
    /// Fail if more tokens than this would be deleted
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().tokens)]
    max_tokens: u64,
    /// Fail if more applications, or more of their keys, than this would be deleted
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().applications)]
    max_applications: u64,
    /// Fail if more tenants than this would be deleted; their keys are destroyed
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().tenants)]
    max_tenants: u64,
    /// Ledger that `cloakroom erasures write` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) async fn run(config: Config, command: ErasuresCommand) -> anyhow::Result<()> {
    match command {
        ErasuresCommand::Write {
            days,
            checkpoints,
            file,
        } => write(config, days, checkpoints.as_deref(), &file).await,
        ErasuresCommand::Apply(arguments) => apply(config, &arguments).await,
    }
}

async fn write(
    config: Config,
    days: u32,
    checkpoints: Option<&Path>,
    file: &Path,
) -> anyhow::Result<()> {
    let trusted = checkpoints.map(open_checkpoints).transpose()?;
    let vault = open(config).await?;
    let ledger = erasures::write(&vault, DAY * days, trusted).await?;
    let text = ledger.to_text(vault.keys.audit_authority()).await?;
    // Written to a temporary file and renamed, so that a reader never sees a partial file.
    let temporary = file.with_extension("new");
    std::fs::write(&temporary, text)
        .with_context(|| format!("cannot write {}", temporary.display()))?;
    std::fs::rename(&temporary, file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    let (count, from, to) = (ledger.erasures.len() as u64, ledger.from, ledger.to);
    let line = format!("{} erasures from {from} to {to}", HumanCount(count));
    let (from, to) = (from.to_string(), to.to_string());
    let object = json!({"file": file, "erasures": count, "from": from, "to": to});
    print_result(&object, &[line]);
    Ok(())
}

async fn apply(config: Config, arguments: &ApplyArguments) -> anyhow::Result<()> {
    let file = &arguments.file;
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let vault = TokenVault::new(&open(config).await?);
    let ledger = Ledger::parse(&text, vault.keys.audit_authority())
        .with_context(|| format!("nothing of {} was applied", file.display()))?;
    let plan = erasures::plan(&vault, &ledger).await?;
    print_text!("to delete: {}", plan.counts);
    let to_delete = json!({
        "tokens": plan.counts.tokens,
        "applications": plan.counts.applications,
        "application_keys": plan.counts.application_keys,
        "tenants": plan.counts.tenants,
    });
    if arguments.dry_run {
        print_text!("dry run: nothing was deleted");
        print_if_json(|| json!({"dry_run": true, "to_delete": to_delete}));
        return Ok(());
    }
    let limits = Limits {
        tokens: arguments.max_tokens,
        applications: arguments.max_applications,
        tenants: arguments.max_tenants,
    };
    let progress = progress(ledger.erasures.len() as u64 - plan.absent);
    let applied =
        erasures::apply(&vault, &ledger, &limits, |done| progress.set_position(done)).await;
    progress.finish_and_clear();
    vault.audit.close().await;
    let applied = applied?;
    let (erased, absent, to) = (applied.erased, applied.absent, ledger.to);
    print_text!(
        "{} erased again, {} were not there",
        HumanCount(erased),
        HumanCount(absent)
    );
    print_text!("what was deleted after {to} is not in this ledger");
    print_if_json(|| {
        let to = to.to_string();
        json!({"dry_run": false, "to_delete": to_delete, "erased": erased, "absent": absent, "ledger_to": to})
    });
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
