//! The operator's BIN table: importing a file, and asking what it says.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::Vault;
use cloakroom::bins::{self, BinFile, Format, Progress, Source};
use cloakroom::config::Config;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::manage::{TenantType, open};

#[derive(Subcommand)]
pub(crate) enum BinsCommand {
    /// Check a file of BIN ranges and give it to all nodes
    Import(ImportArguments),
    /// Tell what cards with these first digits show, and where that comes from
    Show {
        /// A BIN of 6 to 11 digits; a whole number works too, but stays in your shell's history
        digits: String,
        /// Whose cards: test tenants also see the published test numbers
        #[arg(long, value_enum, default_value = "production", value_name = "TYPE")]
        tenant_type: TenantType,
    },
    /// Tell which table is kept
    Status,
}

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// A CSV file with a header, JSON (an array, or one object per line), or Parquet
    file: PathBuf,
    /// What the file is, when its name does not tell
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Bounds of 13 digits and more are prefixes, filled up with zeros and nines
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
    // A vault that does not open is better told before minutes of reading than after.
    let vault = open(config).await?;
    let started = Instant::now();
    let mut news = News::new();
    let table = bins::read(&file, &mut |progress| news.tell(progress))?;
    let read_in = started.elapsed();
    let imported = bins::import(&vault, &table, &file.name(), &mut |progress| {
        news.tell(progress);
    })
    .await?;
    news.end();
    say!(
        "imported {} rows of {} as version {}",
        HumanCount(table.rows()),
        file.name(),
        imported.version
    );
    say!(
        "{} different records, {} in the database, {} in each node's memory",
        HumanCount(table.records() as u64),
        HumanBytes(imported.bytes),
        HumanBytes(table.bytes() as u64)
    );
    say!(
        "read and checked in {:.1} s, {:.1} s in all",
        read_in.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    say!("running nodes use it within ten seconds; `cloakroom bins show BIN` shows what it says");
    Ok(())
}

async fn show(vault: &Vault, digits: &str, tenant_type: TenantType) -> anyhow::Result<()> {
    let (details, source) = bins::show(vault, tenant_type.kind(), digits).await?;
    match source {
        Source::TestTable => say!("source: the published test numbers, for test tenants only"),
        Source::OperatorTable(version) => {
            say!("source: the imported table, version {version}");
        }
        Source::Prefix => say!("source: the first digits alone; no table knows this number"),
    }
    say!(
        "{}",
        serde_json::to_string_pretty(&details).context("details")?
    );
    Ok(())
}

async fn status(vault: &Vault) -> anyhow::Result<()> {
    let Some(status) = bins::status(vault).await? else {
        say!("no table was imported; brands are told by first digits alone");
        say!("next: `cloakroom bins import FILE`");
        return Ok(());
    };
    say!("version      {}", status.version);
    say!("rows         {}", HumanCount(status.rows));
    say!("bytes        {}", HumanCount(status.bytes));
    say!("imported at  {}", status.imported_at);
    say!("source       {}", status.source);
    Ok(())
}

/// Tells how far an import is: a bar on a terminal, a line every few seconds elsewhere.
struct News {
    bar: Option<ProgressBar>,
    started: Instant,
    told: Instant,
}

const NEWS_PERIOD: Duration = Duration::from_secs(5);

impl News {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            bar: std::io::stderr().is_terminal().then(reading_bar),
            started: now,
            told: now,
        }
    }

    fn tell(&mut self, progress: Progress) {
        match &self.bar {
            Some(bar) => draw(bar, progress, self.started),
            None if self.told.elapsed() >= NEWS_PERIOD => {
                self.told = Instant::now();
                say!("{}", line(progress, self.started));
            }
            None => {}
        }
    }

    fn end(&self) {
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
        Progress::Compiling { rows } => format!("putting {} rows in order", HumanCount(rows)),
        Progress::Writing { bytes } => format!("{} written to the database", HumanBytes(bytes)),
    }
}
