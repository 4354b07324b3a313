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
use cloakroom::audit::{self, ArchivedDay, TrustedCheckpoints, VerificationReport};
use cloakroom::config::Config;
use cloakroom::keys::AuthorityKey;
use cloakroom::{Vault, rotation, transfer};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::histories;
use crate::manage::open;
use crate::output::{is_json, print_if_json, print_list, print_result, to_strings};

/// Buffer of files.
const BUFFER_BYTES: usize = 1024 * 1024;

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Detect entries that were modified, moved, added or deleted
    Verify(VerifyArguments),
    /// Write entries, keys and checkpoints to a file that `verify --export` reads
    Export(ExportArguments),
    /// Write each complete day to a file of its own, verified, unless the folder has it already; run it daily
    Archive {
        /// Folder with one file per day, such as 2030-02-05.jsonl
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Print the public keys of the audit authority, which verify exports: the active one, and former ones with their end
    PublicKey,
}

#[derive(Args)]
pub(crate) struct VerifyArguments {
    /// Verify an export instead of the database; needs no configuration
    #[arg(long, value_name = "FILE", requires = "public_key")]
    export: Option<PathBuf>,
    /// Verify what a sink of audit.stream_file, stream_url or stream_syslog has received; needs no configuration
    #[arg(
        long,
        value_name = "FILE",
        requires = "public_key",
        conflicts_with = "export"
    )]
    stream: Option<PathBuf>,
    /// Public key of the audit authority, from `cloakroom audit public-key`. The active one suffices; repeat the option for
    /// former ones, with their end, if the file does not name them
    #[arg(long, value_name = "KEY")]
    public_key: Vec<AuthorityKey>,
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
        AuditCommand::Verify(arguments) => match (&arguments.export, &arguments.stream) {
            (Some(file), _) => verify_export(file, &arguments),
            (None, Some(file)) => verify_stream(file, &arguments),
            (None, None) if !arguments.public_key.is_empty() => {
                bail!("--public-key is for --export and --stream")
            }
            (None, None) => verify(load()?, &arguments).await,
        },
        AuditCommand::Export(arguments) => export(load()?, &arguments).await,
        AuditCommand::Archive { folder } => archive(load()?, &folder).await,
        AuditCommand::PublicKey => {
            let vault = open(load()?).await?;
            let keys = vault.keys.audit_authority().public_keys();
            print_list(&keys, |key| key.to_string().into(), ToString::to_string);
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
    finish(&verified, progress, arguments)?;
    let stale_rows = report_stale_rows(&vault).await?;
    let false_proofs = report_proofs(&vault).await?;
    let altered_exports = report_exports(&vault).await?;
    let histories = histories::verify(&vault).await?;
    let others = [&stale_rows, &false_proofs, &altered_exports];
    let has_findings = others.iter().any(|findings| !findings.is_empty());
    let is_intact = verified.finding_count == 0 && histories.finding_count == 0 && !has_findings;
    print_if_json(|| {
        let mut object = to_json(&verified);
        object["intact"] = is_intact.into();
        object["stale_rows"] = to_strings(&stale_rows);
        object["false_proofs"] = to_strings(&false_proofs);
        object["altered_exports"] = to_strings(&altered_exports);
        object["tokens"] = json!({
            "count": histories.tokens,
            "findings": to_strings(&histories.findings),
            "finding_count": histories.finding_count,
        });
        object
    });
    Ok(exit_code(is_intact))
}

fn exit_code(is_intact: bool) -> ExitCode {
    match is_intact {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The report on the entries, as JSON.
fn to_json(verified: &VerificationReport) -> Value {
    json!({
        "intact": verified.finding_count == 0,
        "entries": verified.records,
        "chains": verified.chains,
        "days": verified.days,
        "checkpoints": verified.checkpoints,
        "compared_checkpoints": verified.compared,
        "findings": to_strings(&verified.findings),
        "finding_count": verified.finding_count,
        "rolled_back": verified.is_rollback(),
    })
}

/// Prints and returns requested exports that were changed outside the vault.
async fn report_exports(vault: &Vault) -> anyhow::Result<Vec<String>> {
    let findings = transfer::export::verify_requests(vault).await?;
    for finding in &findings {
        print_text!("  {finding}");
    }
    Ok(findings)
}

/// Prints and returns destroyed keys without an authentic proof that nothing needed them.
async fn report_proofs(vault: &Vault) -> anyhow::Result<Vec<String>> {
    let findings = rotation::verify_proofs(vault).await?;
    for finding in &findings {
        print_text!("  {finding}");
    }
    if findings.is_empty() {
        print_text!("all destroyed keys were proved to be unused");
    }
    Ok(findings)
}

/// Prints and returns the buckets whose rows are not the current ones.
async fn report_stale_rows(vault: &Vault) -> anyhow::Result<Vec<String>> {
    let findings = access::verify_states(&vault.db, vault.keys.control()).await?;
    for finding in &findings {
        print_text!("  {finding}");
    }
    if findings.is_empty() {
        print_text!("all rows that grant access are current");
    }
    Ok(findings)
}

fn verify_export(file: &Path, arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let keys = public_keys(arguments)?;
    let trusted = trusted(arguments)?;
    let input = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let progress = Progress::start(Some(input.metadata()?.len()));
    let input = progress.bar.wrap_read(input);
    let records = audit::read_records(BufReader::with_capacity(BUFFER_BYTES, input));
    let days = arguments.days.range();
    let update = |entries| progress.update(entries);
    let verified = audit::verify_export(records, keys, days, trusted, update)
        .with_context(|| format!("{} cannot be verified", file.display()))?;
    finish(&verified, progress, arguments)?;
    print_if_json(|| to_json(&verified));
    Ok(exit_code(verified.finding_count == 0))
}

/// Verifies what a sink has received, in any order and with repetitions.
fn verify_stream(file: &Path, arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let keys = public_keys(arguments)?;
    let trusted = trusted(arguments)?;
    let input = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let progress = Progress::start(None);
    let days = arguments.days.range();
    let update = |entries| progress.update(entries);
    let verified = audit::read_received(&input)
        .and_then(|records| audit::verify_export(records, keys, days, trusted, update))
        .with_context(|| format!("{} cannot be verified", file.display()))?;
    finish(&verified, progress, arguments)?;
    print_if_json(|| to_json(&verified));
    Ok(exit_code(verified.finding_count == 0))
}

fn public_keys(arguments: &VerifyArguments) -> anyhow::Result<Vec<AuthorityKey>> {
    let keys = arguments.public_key.clone();
    if keys.iter().filter(|key| key.until.is_none()).count() > 1 {
        bail!(
            "only the active key has no end: use each --public-key as `cloakroom audit public-key` prints it"
        );
    }
    Ok(keys)
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
    let bytes = std::fs::metadata(file)?.len();
    let name = file.display();
    let lines = [
        format!(
            "{} entries, {}, in {name}",
            HumanCount(entries),
            HumanBytes(bytes)
        ),
        format!(
            "next: `cloakroom audit verify --export {name} --public-key KEY`, with the key of `cloakroom audit public-key`"
        ),
    ];
    let object = json!({"file": file, "entries": entries, "bytes": bytes});
    print_result(&object, &lines);
    Ok(ExitCode::SUCCESS)
}

async fn archive(config: Config, folder: &Path) -> anyhow::Result<ExitCode> {
    let vault = open(config).await?;
    let days = audit::archive(&vault.audit, folder).await?;
    let to_json =
        |day: &ArchivedDay| json!({"date": day.date, "file": day.file, "entries": day.entries});
    let to_line = |day: &ArchivedDay| {
        let entries = HumanCount(day.entries);
        format!(
            "{}: {entries} entries, verified, in {}",
            day.date,
            day.file.display()
        )
    };
    print_list(&days, to_json, to_line);
    if days.is_empty() && !is_json() {
        print_line!("nothing to do: every complete day is archived");
    }
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

/// Writes the newest checkpoint and prints the report.
fn finish(
    verified: &VerificationReport,
    progress: Progress,
    arguments: &VerifyArguments,
) -> anyhow::Result<()> {
    progress.bar.finish_and_clear();
    if let (Some(file), Some(newest)) = (&arguments.remember, &verified.newest) {
        std::fs::write(file, format!("{newest}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    print_text!(
        "{} entries in {} chains of {} days, {} checkpoints",
        HumanCount(verified.records),
        HumanCount(verified.chains),
        verified.days,
        HumanCount(verified.checkpoints)
    );
    for finding in &verified.findings {
        print_text!("  {finding}");
    }
    let omitted = verified.finding_count - verified.findings.len() as u64;
    if omitted > 0 {
        print_text!("  and {} more", HumanCount(omitted));
    }
    if verified.finding_count > 0 {
        let count = verified.finding_count;
        match verified.is_rollback() {
            true => print_text!(
                "the database is older than the sink's file: a backup was restored, or the database was rolled back"
            ),
            false => print_text!(
                "the audit log was tampered with: {count} finding{}",
                if count == 1 { "" } else { "s" }
            ),
        }
        return Ok(());
    }
    print_text!("no entry was modified, moved, added or deleted");
    if arguments.checkpoints.is_none() {
        print_text!(
            "this does not detect a rollback of the whole database to an older state: compare with the checkpoints of \
             a sink, --checkpoints FILE"
        );
    }
    Ok(())
}
