//! `cloakroom import`.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use cloakroom::applications;
use cloakroom::config::Config;
use cloakroom::storage;
use cloakroom::tokens::TokenVault;
use cloakroom::transfer::PrivateKey;
use cloakroom::transfer::export::{self, Manifest, TOKENS_FILE};
use cloakroom::transfer::import::{
    self, BatchReport, ColumnMap, Counts, Format, Options, Processor, RejectedLine, Target,
};
use indicatif::ProgressBar;
use serde_json::json;
use uuid::Uuid;

use super::{parse_public_key, progress_bar};
use crate::manage::{explain_application, find_tenant, open, parse_id};
use crate::output::print_if_json;

/// Rejected lines that are printed if they are not written to a file.
const PRINTED_MAX: usize = 10;
/// Exit code if lines were rejected.
const REJECTED: u8 = 2;
const STANDARD_INPUT: &str = "-";

/// Import tokens from JSON lines, CSV, or an export of another vault
#[derive(Args)]
pub(crate) struct ImportArguments {
    /// Tenant id or name
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// Application that the tokens name as their author
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    app: Uuid,
    /// Name of the import; run it again under the same name to continue it
    #[arg(long, value_name = "NAME", required_unless_present = "export")]
    name: Option<String>,
    /// Format of the input
    #[arg(long, value_enum, default_value_t = InputFormat::Json)]
    format: InputFormat,
    /// CSV: the attribute of a column, such as `pan=data.number`; `-` ignores the column; repeatable
    #[arg(long = "map", value_name = "COLUMN=ATTRIBUTE", value_parser = parse_mapping)]
    maps: Vec<(String, String)>,
    /// CSV: the file is an export of this processor, whose columns need no --map
    #[arg(long, value_enum, value_name = "NAME")]
    processor: Option<InputProcessor>,
    /// CSV: the type of tokens, unless a column has it
    #[arg(long = "type", value_name = "TYPE", default_value = "card")]
    kind: String,
    /// The input is encrypted: compact JWEs for this X25519 private key (PEM), one per line
    #[arg(long, value_name = "FILE")]
    decrypt_key: Option<PathBuf>,
    /// Folder that `cloakroom export` wrote, instead of a file; it is verified first
    #[arg(long, value_name = "FOLDER", conflicts_with = "file", requires_all = ["decrypt_key", "public_key"])]
    export: Option<PathBuf>,
    /// Public key of the audit authority of the exporting vault, from `cloakroom audit public-key` there
    #[arg(long, value_name = "HEX", requires = "export")]
    public_key: Option<String>,
    /// Give every token a new id; --id-map lists old and new ids
    #[arg(long, requires = "id_map")]
    new_ids: bool,
    /// CSV file to write: lines whose token has another id than the input
    #[arg(long, value_name = "FILE")]
    id_map: Option<PathBuf>,
    /// Skip cards that exist already, whatever the lines and the tenant's settings say
    #[arg(long)]
    deduplicate: bool,
    /// File to write: line, id and reason of every rejected line, without data
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Validate everything, write nothing
    #[arg(long)]
    dry_run: bool,
    /// Number of lines or records that the input must have, without the header; protects against a truncated pipe
    #[arg(long, value_name = "NUMBER")]
    lines: Option<u64>,
    /// Batches that are written at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    parallel: usize,
    /// File to read; `-` reads the standard input
    #[arg(value_name = "FILE", required_unless_present = "export")]
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    /// One token per line, as in a request that creates it
    Json,
    /// One token per record, with a header
    Csv,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputProcessor {
    Stripe,
    Braintree,
}

fn parse_mapping(text: &str) -> Result<(String, String), String> {
    let (column, attribute) = text
        .split_once('=')
        .ok_or("expected COLUMN=ATTRIBUTE, such as pan=data.number")?;
    Ok((column.to_owned(), attribute.to_owned()))
}

pub(crate) async fn import(config: Config, arguments: ImportArguments) -> anyhow::Result<ExitCode> {
    let is_csv = arguments.format == InputFormat::Csv;
    if !is_csv && (!arguments.maps.is_empty() || arguments.processor.is_some()) {
        bail!("--map and --processor apply to CSV only: add --format csv");
    }
    let key = arguments.decrypt_key.as_deref().map(PrivateKey::read);
    let key = key.transpose().context("--decrypt-key cannot be used")?;
    let manifest = verify_export(&arguments, key.as_ref())?;
    let input = open_input(&arguments)?;
    let vault = open(config).await?;
    let tenant = find_tenant(&vault, &arguments.tenant).await?;
    let app = applications::find(&vault, (&tenant).into(), &arguments.app.to_string()).await;
    app.map_err(|error| explain_application(&tenant, error))
        .context("--app must be an application of the tenant")?;
    let name = match (&arguments.name, &manifest) {
        (Some(name), _) => name.clone(),
        (None, Some(manifest)) => format!("export {}", manifest.export),
        (None, None) => bail!("--name is required"),
    };
    let target = Target {
        vault: TokenVault::new(&vault),
        tenant,
        application: arguments.app,
    };
    let mut options = options(&arguments, name, key);
    options.chunks = manifest.as_ref().map(|manifest| manifest.chunks.clone());
    let mut output = Output::create(&arguments)?;
    let counts = import::run(target, options, input, |batch| output.add(batch)).await;
    vault.audit.close().await;
    let counts = counts?;
    let rejected = output.finish(&arguments)?;
    print_summary(&arguments, counts, &rejected);
    reconcile(counts, manifest.as_ref())?;
    Ok(match counts.rejected {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(REJECTED),
    })
}

fn options(arguments: &ImportArguments, name: String, key: Option<PrivateKey>) -> Options {
    Options {
        name,
        format: match arguments.format {
            InputFormat::Json => Format::JsonLines,
            InputFormat::Csv => Format::Csv(ColumnMap {
                columns: arguments.maps.clone(),
                processor: arguments.processor.map(|processor| match processor {
                    InputProcessor::Stripe => Processor::Stripe,
                    InputProcessor::Braintree => Processor::Braintree,
                }),
                kind: arguments.kind.clone(),
            }),
        },
        key,
        chunks: None,
        assigns_ids: arguments.new_ids,
        deduplicates: arguments.deduplicate,
        is_dry_run: arguments.dry_run,
        lines: arguments.lines,
        in_flight: arguments.parallel,
        before_repetition: announce_repetition,
    }
}

#[expect(clippy::print_stderr, reason = "standard output has the result")]
fn announce_repetition(line: u64, reason: &storage::Error) {
    eprintln!("cloakroom: the lines from {line} on are repeated: {reason}");
}

/// Verifies the export before anything is imported.
fn verify_export(
    arguments: &ImportArguments,
    key: Option<&PrivateKey>,
) -> anyhow::Result<Option<Manifest>> {
    let (Some(folder), Some(public_key)) = (&arguments.export, &arguments.public_key) else {
        return Ok(None);
    };
    let public_key = parse_public_key(public_key)?;
    Ok(Some(export::verify(folder, &[public_key], key)?.manifest))
}

fn open_input(arguments: &ImportArguments) -> anyhow::Result<Box<dyn Read + Send>> {
    let path = match (&arguments.file, &arguments.export) {
        (Some(file), _) if file == Path::new(STANDARD_INPUT) => {
            return Ok(Box::new(std::io::stdin()));
        }
        (Some(file), _) => file.clone(),
        (None, Some(folder)) => folder.join(TOKENS_FILE),
        (None, None) => bail!("FILE is required"),
    };
    let file = File::open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Fails if the tokens of an export are not all in this vault now.
fn reconcile(counts: Counts, manifest: Option<&Manifest>) -> anyhow::Result<()> {
    let Some(manifest) = manifest else {
        return Ok(());
    };
    let (expected, found) = (manifest.tokens, counts.created + counts.duplicates);
    if found != expected {
        bail!("the manifest lists {expected} tokens, but {found} were imported");
    }
    print_text!("reconciled with the manifest: {expected} tokens");
    Ok(())
}

/// The files that an import writes, and its progress.
struct Output {
    bar: ProgressBar,
    rejected: Vec<RejectedLine>,
    id_map: Option<(PathBuf, BufWriter<File>)>,
    failure: Option<std::io::Error>,
}

impl Output {
    fn create(arguments: &ImportArguments) -> anyhow::Result<Self> {
        let id_map = match &arguments.id_map {
            Some(path) => {
                let mut file = create_file(path)?;
                file.write_all(b"line,id,token,duplicate\n")?;
                Some((path.clone(), file))
            }
            None => None,
        };
        Ok(Self {
            bar: progress_bar(),
            rejected: Vec::new(),
            id_map,
            failure: None,
        })
    }

    fn add(&mut self, batch: BatchReport) {
        self.bar.inc(batch.counts.lines());
        self.rejected.extend(batch.rejected);
        let Some((_, file)) = &mut self.id_map else {
            return;
        };
        for mapped in batch.mapped {
            let id = quoted(&mapped.id.unwrap_or_default());
            let (line, token) = (mapped.line, quoted(&mapped.token));
            let is_duplicate = mapped.is_duplicate;
            let written = writeln!(file, "{line},{id},{token},{is_duplicate}");
            self.failure = self.failure.take().or(written.err());
        }
    }

    /// Writes the files and returns the rejected lines.
    fn finish(mut self, arguments: &ImportArguments) -> anyhow::Result<Vec<RejectedLine>> {
        self.bar.finish_and_clear();
        if let Some((path, mut file)) = self.id_map.take() {
            let written = self.failure.take().map_or_else(|| file.flush(), Err);
            written.with_context(|| format!("{} cannot be written", path.display()))?;
        }
        self.rejected.sort_by_key(|rejected| rejected.line);
        if let Some(path) = &arguments.rejects {
            write_rejects(path, &self.rejected)?;
        }
        Ok(self.rejected)
    }
}

/// Characters that make a text the formula of a spreadsheet.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A text as a value of CSV, which a spreadsheet does not evaluate.
fn quoted(text: &str) -> String {
    let mark = if text.starts_with(FORMULA) { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

/// Creates a file that only its owner can read.
fn create_file(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    let file = file.open(path);
    let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(BufWriter::new(file))
}

fn write_rejects(path: &Path, rejected: &[RejectedLine]) -> anyhow::Result<()> {
    let mut file = create_file(path)?;
    for rejected in rejected {
        writeln!(file, "{}", serde_json::to_string(rejected)?)?;
    }
    file.flush()?;
    Ok(())
}

fn print_rejects(rejected: &[RejectedLine]) {
    for rejected in rejected.iter().take(PRINTED_MAX) {
        print_text!("line {}: {}", rejected.line, rejected.reason);
    }
    if let Some(more @ 1..) = rejected.len().checked_sub(PRINTED_MAX) {
        print_text!("and {more} more rejected lines; --rejects FILE lists all");
    }
}

fn print_summary(arguments: &ImportArguments, counts: Counts, rejected_lines: &[RejectedLine]) {
    let printed = match arguments.rejects {
        Some(_) => &[],
        None => rejected_lines,
    };
    print_rejects(printed);
    let Counts {
        created,
        duplicates,
        rejected,
        dropped_codes,
        earlier,
    } = counts;
    if arguments.dry_run {
        print_text!("dry run: nothing was written");
    }
    print_text!("{created} created, {duplicates} duplicates, {rejected} rejected");
    if dropped_codes > 0 {
        print_text!("{dropped_codes} security codes were not imported: they must not be stored");
    }
    match earlier {
        0 => {}
        all if all == counts.lines() => {
            print_text!("nothing to do: an earlier run has imported all lines");
        }
        some => print_text!("of these, {some} lines by an earlier run"),
    }
    print_if_json(|| {
        let shown: Vec<&RejectedLine> = printed.iter().take(PRINTED_MAX).collect();
        json!({
            "dry_run": arguments.dry_run,
            "created": created,
            "duplicates": duplicates,
            "rejected": rejected,
            "dropped_security_codes": dropped_codes,
            "earlier": earlier,
            "rejected_lines": shown,
        })
    });
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn ids_are_no_formulas_of_a_spreadsheet() {
        let cases = [
            ("order-17", "\"order-17\""),
            ("a\"b", "\"a\"\"b\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("＝1", "\"'＝1\""),
            ("", "\"\""),
        ];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected);
        }
    }
}
