//! `cloakroom bins`: imports and queries the operator's BIN table.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::Vault;
use cloakroom::bins::{self, BinFile, Format, Progress, Source};
use cloakroom::config::Config;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use serde_json::json;

use crate::manage::{TenantType, open};
use crate::output::print_result;

#[derive(Subcommand)]
pub(crate) enum BinsCommand {
    /// Validate a file of BIN ranges and distribute it to all nodes
    Import(ImportArguments),
    /// Show the card details of a BIN, and their source
    Show {
        /// A BIN of 6 to 11 digits; a full card number works too, but stays in your shell history
        digits: String,
        /// Tenant type; test tenants also see the published test numbers
        #[arg(long, value_enum, default_value = "production", value_name = "TYPE")]
        tenant_type: TenantType,
    },
    /// Show the imported table
    Status,
}

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// CSV with a header row, JSON (an array, or one object per line), or Parquet
    file: PathBuf,
    /// Format of the file, if its extension does not determine it
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Bounds with 13 or more digits are prefixes padded with zeros and nines
    #[arg(long)]
    padded: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FileFormat {
    Csv,
    Json,
    Parquet,
}

pub(crate) async fn run(config: Config, command: BinsCommand) -> anyhow::Result<()> {
    match command {
        BinsCommand::Import(arguments) => import(config, arguments).await,
        BinsCommand::Show {
            digits,
            tenant_type,
        } => show(&open(config).await?, &digits, tenant_type).await,
        BinsCommand::Status => status(&open(config).await?).await,
    }
}

async fn import(config: Config, arguments: ImportArguments) -> anyhow::Result<()> {
    let format = match arguments.format {
        Some(FileFormat::Csv) => Format::Csv,
        Some(FileFormat::Json) => Format::Json,
        Some(FileFormat::Parquet) => Format::Parquet,
        None => Format::of(&arguments.file)?,
    };
    let file = BinFile {
        path: arguments.file,
        format,
        is_padded: arguments.padded,
    };
    // Opens the vault first: reading the file may take minutes.
    let vault = open(config).await?;
    let started = Instant::now();
    let mut reporter = ProgressReporter::new();
    let table = bins::read(&file, &mut |progress| reporter.report(progress))?;
    let read_in = started.elapsed();
    let imported = bins::import(&vault, &table, &file.name(), &mut |progress| {
        reporter.report(progress);
    })
    .await?;
    reporter.finish();
    let lines = [
        format!(
            "imported {} rows of {} as version {}",
            HumanCount(table.rows()),
            file.name(),
            imported.version
        ),
        format!(
            "{} distinct records, {} in the database, {} in the memory of each node",
            HumanCount(table.records() as u64),
            HumanBytes(imported.bytes),
            HumanBytes(table.bytes() as u64)
        ),
        format!(
            "read and validated in {:.1} s, {:.1} s in total",
            read_in.as_secs_f64(),
            started.elapsed().as_secs_f64()
        ),
        "all nodes use it within ten seconds; `cloakroom bins show BIN` shows the details of a BIN"
            .to_owned(),
    ];
    let object = json!({
        "version": imported.version,
        "source": file.name(),
        "rows": table.rows(),
        "records": table.records(),
        "database_bytes": imported.bytes,
        "memory_bytes": table.bytes(),
    });
    print_result(&object, &lines);
    Ok(())
}

async fn show(vault: &Vault, digits: &str, tenant_type: TenantType) -> anyhow::Result<()> {
    let (details, source) = bins::show(vault, tenant_type.kind(), digits).await?;
    let details = serde_json::to_value(&details).context("details")?;
    let (name, version, line) = match source {
        Source::TestTable => (
            "test_table",
            None,
            "the published test numbers, for test tenants only".to_owned(),
        ),
        Source::OperatorTable(version) => (
            "imported_table",
            Some(version),
            format!("the imported table, version {version}"),
        ),
        Source::Prefix => (
            "prefix",
            None,
            "the first digits alone; no table has this BIN".to_owned(),
        ),
    };
    let lines = [format!("source: {line}"), format!("{details:#}")];
    let object = json!({"source": name, "version": version, "details": details});
    print_result(&object, &lines);
    Ok(())
}

async fn status(vault: &Vault) -> anyhow::Result<()> {
    let Some(status) = bins::status(vault).await? else {
        let lines = [
            "no table was imported; the brand is derived from the first digits".to_owned(),
            "next: `cloakroom bins import FILE`".to_owned(),
        ];
        print_result(&json!({"version": null}), &lines);
        return Ok(());
    };
    let lines = [
        format!("version      {}", status.version),
        format!("rows         {}", HumanCount(status.rows)),
        format!("bytes        {}", HumanCount(status.bytes)),
        format!("imported at  {}", status.imported_at),
        format!("source       {}", status.source),
    ];
    let object = json!({
        "version": status.version,
        "rows": status.rows,
        "bytes": status.bytes,
        "imported_at": status.imported_at.to_string(),
        "source": status.source,
    });
    print_result(&object, &lines);
    Ok(())
}

/// Reports the progress of an import: a bar on a terminal, otherwise a line every few seconds.
struct ProgressReporter {
    bar: Option<ProgressBar>,
    started: Instant,
    reported: Instant,
}

const REPORT_PERIOD: Duration = Duration::from_secs(5);

impl ProgressReporter {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            bar: std::io::stderr().is_terminal().then(reading_bar),
            started: now,
            reported: now,
        }
    }

    fn report(&mut self, progress: Progress) {
        match &self.bar {
            Some(bar) => draw(bar, progress, self.started),
            None if self.reported.elapsed() >= REPORT_PERIOD => {
                self.reported = Instant::now();
                print_text!("{}", line(progress, self.started));
            }
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn reading_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn draw(bar: &ProgressBar, progress: Progress, started: Instant) {
    if let Progress::Reading { done, total, .. } = progress {
        bar.set_length(total);
        bar.set_position(done);
    }
    bar.set_message(line(progress, started));
}

fn line(progress: Progress, started: Instant) -> String {
    let elapsed = started.elapsed().as_secs_f64().max(0.001);
    match progress {
        Progress::Reading { rows, done, total } => {
            let per_second = rows as f64 / elapsed;
            let left = elapsed * total.saturating_sub(done) as f64 / (done.max(1)) as f64;
            format!(
                "{} rows, {} rows/s, {left:.0} s left",
                HumanCount(rows),
                HumanCount(per_second as u64)
            )
        }
        Progress::Compiling { rows } => format!("sorting {} rows", HumanCount(rows)),
        Progress::Writing { bytes } => format!("{} written to the database", HumanBytes(bytes)),
    }
}
