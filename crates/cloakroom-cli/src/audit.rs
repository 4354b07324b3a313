//! `cloakroom audit`: verifies and exports the audit log.

use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use cloakroom::access;
use cloakroom::audit::{self, TrustedCheckpoints, VerificationReport};
use cloakroom::config::Config;
use cloakroom::{Vault, rotation, transfer};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::histories;
use crate::manage::open;

/// Buffer of files.
const BUFFER_BYTES: usize = 1024 * 1024;

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Detect entries that were modified, moved, added or deleted
    Verify(VerifyArguments),
    /// Write entries, keys and checkpoints to a file that `verify --export` reads
    Export(ExportArguments),
    /// Print the public key of the audit authority, which verifies exports
    PublicKey,
}

#[derive(Args)]
pub(crate) struct VerifyArguments {
    /// Verify an export instead of the database; needs no configuration
    #[arg(long, value_name = "FILE", requires = "public_key")]
    export: Option<PathBuf>,
    /// Public key of the audit authority, from `cloakroom audit public-key`
    #[arg(long, value_name = "HEX", requires = "export")]
    public_key: Option<String>,
    /// Compare with the checkpoints that a sink received, which detects a rollback
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,
    /// Write the newest checkpoint to a file, for a later --checkpoints; store it apart from the database
    #[arg(long, value_name = "FILE")]
    remember: Option<PathBuf>,
    #[command(flatten)]
    days: DayArguments,
}

#[derive(Args)]
pub(crate) struct ExportArguments {
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    days: DayArguments,
}

#[derive(Args)]
struct DayArguments {
    /// First day, such as 2030-02-05
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    from: Option<i32>,
    /// Last day
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    to: Option<i32>,
}

fn parse_day(text: &str) -> Result<i32, String> {
    audit::parse_day(text).ok_or_else(|| "expected a date such as 2030-02-05".to_owned())
}

impl DayArguments {
    fn range(&self) -> RangeInclusive<i32> {
        self.from.unwrap_or(i32::MIN)..=self.to.unwrap_or(i32::MAX)
    }
}

/// `load` is called only by commands that use the database.
pub(crate) async fn run(
    load: impl FnOnce() -> Result<Config, cloakroom::config::Error>,
    command: AuditCommand,
) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::Verify(arguments) => match &arguments.export {
            Some(file) => verify_export(file, &arguments),
            None => verify(load()?, &arguments).await,
        },
        AuditCommand::Export(arguments) => export(load()?, &arguments).await,
        AuditCommand::PublicKey => {
            let vault = open(load()?).await?;
            for key in vault.keys.audit_authority().public_keys() {
                print_line!("{}", hex::encode(key));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Opens a file of checkpoints that a sink received.
pub(crate) fn open_checkpoints(file: &Path) -> anyhow::Result<TrustedCheckpoints> {
    TrustedCheckpoints::open(file)
        .with_context(|| format!("{} cannot be used as --checkpoints", file.display()))
}

async fn verify(config: Config, arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    if arguments.days.range() != audit::ALL_DAYS {
        bail!("--from and --to are for exports; the database is verified as a whole");
    }
    let trusted = trusted(arguments)?;
    let vault = open(config).await?;
    let progress = Progress::start(None);
    let verified = audit::verify(&vault.audit, trusted, |entries| progress.update(entries)).await?;
    let code = finish(&verified, progress, arguments)?;
    let has_stale_rows = report_stale_rows(&vault).await?;
    let has_false_proofs = report_proofs(&vault).await?;
    let has_altered_exports = report_exports(&vault).await?;
    let histories_match = histories::verify(&vault).await?;
    let has_findings = has_stale_rows || has_false_proofs || has_altered_exports;
    Ok(match histories_match && !has_findings {
        true => code,
        false => ExitCode::FAILURE,
    })
}

/// Prints requested exports that were changed outside the vault; false if there are none.
async fn report_exports(vault: &Vault) -> anyhow::Result<bool> {
    let findings = transfer::export::verify_requests(vault).await?;
    for finding in &findings {
        print_line!("  {finding}");
    }
    Ok(!findings.is_empty())
}

/// Prints destroyed keys without an authentic proof that nothing needed them; false if there are none.
async fn report_proofs(vault: &Vault) -> anyhow::Result<bool> {
    let findings = rotation::verify_proofs(vault).await?;
    for finding in &findings {
        print_line!("  {finding}");
    }
    if findings.is_empty() {
        print_line!("all destroyed keys were proved to be unused");
    }
    Ok(!findings.is_empty())
}

/// Prints the buckets whose rows are not the current ones; false if there are none.
async fn report_stale_rows(vault: &Vault) -> anyhow::Result<bool> {
    let findings = access::verify_states(&vault.db, vault.keys.control()).await?;
    for finding in &findings {
        print_line!("  {finding}");
    }
    if findings.is_empty() {
        print_line!("all rows that grant access are current");
    }
    Ok(!findings.is_empty())
}

fn verify_export(file: &Path, arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let key = arguments.public_key.as_deref().unwrap_or_default();
    let key = hex::decode(key).ok().and_then(|key| key.try_into().ok());
    let key = key.context("--public-key must be 64 hexadecimal digits")?;
    let trusted = trusted(arguments)?;
    let input = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let progress = Progress::start(Some(input.metadata()?.len()));
    let input = progress.bar.wrap_read(input);
    let records = audit::read_records(BufReader::with_capacity(BUFFER_BYTES, input));
    let days = arguments.days.range();
    let update = |entries| progress.update(entries);
    let verified = audit::verify_export(records, key, days, trusted, update)
        .with_context(|| format!("{} cannot be verified", file.display()))?;
    finish(&verified, progress, arguments)
}

fn trusted(arguments: &VerifyArguments) -> anyhow::Result<Option<TrustedCheckpoints>> {
    let file = arguments.checkpoints.as_deref();
    file.map(open_checkpoints).transpose()
}

async fn export(config: Config, arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let vault = open(config).await?;
    let file = &arguments.file;
    let output = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    let output = BufWriter::with_capacity(BUFFER_BYTES, output);
    let progress = Progress::start(None);
    let days = arguments.days.range();
    let update = |entries| progress.update(entries);
    let entries = audit::export(&vault.audit, days, output, update).await?;
    progress.bar.finish_and_clear();
    let size = HumanBytes(std::fs::metadata(file)?.len());
    print_line!(
        "{} entries, {size}, in {}",
        HumanCount(entries),
        file.display()
    );
    print_line!(
        "next: `cloakroom audit verify --export {} --public-key KEY`, with the key of `cloakroom audit public-key`",
        file.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Progress on standard error, with a rate.
struct Progress {
    bar: ProgressBar,
    started_at: Instant,
}

impl Progress {
    /// `length` is the size of the input in bytes, if known.
    fn start(length: Option<u64>) -> Self {
        let bar = match (std::io::stderr().is_terminal(), length) {
            (false, _) => ProgressBar::hidden(),
            (true, Some(length)) => ProgressBar::new(length),
            (true, None) => ProgressBar::new_spinner(),
        };
        let template = match length {
            Some(_) => "{bar:40} {percent} %  {msg}  {eta}",
            None => "{spinner} {msg}  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self {
            bar,
            started_at: Instant::now(),
        }
    }

    fn update(&self, entries: u64) {
        let rate = entries as f64 / self.started_at.elapsed().as_secs_f64().max(0.001);
        let (entries, rate) = (HumanCount(entries), HumanCount(rate as u64));
        self.bar
            .set_message(format!("{entries} entries, {rate} per second"));
    }
}

fn finish(
    verified: &VerificationReport,
    progress: Progress,
    arguments: &VerifyArguments,
) -> anyhow::Result<ExitCode> {
    progress.bar.finish_and_clear();
    if let (Some(file), Some(newest)) = (&arguments.remember, &verified.newest) {
        std::fs::write(file, format!("{newest}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    print_line!(
        "{} entries in {} chains of {} days, {} checkpoints",
        HumanCount(verified.records),
        HumanCount(verified.chains),
        verified.days,
        HumanCount(verified.checkpoints)
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
        return Ok(ExitCode::FAILURE);
    }
    print_line!("no entry was modified, moved, added or deleted");
    if arguments.checkpoints.is_none() {
        print_line!(
            "this does not detect a rollback of the whole database to an older state: compare with the checkpoints of \
             a sink, --checkpoints FILE"
        );
    }
    Ok(ExitCode::SUCCESS)
}
