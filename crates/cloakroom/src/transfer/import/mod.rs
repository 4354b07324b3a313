//! Imports tokens from a file: in batches, several at the same time, each committed together with its progress.
//!
//! An import has a name. Running it again with the same input continues it: batches that are committed are skipped, and a
//! different input is rejected. A line without an id gets one that is derived from the name and the line, so that a line
//! cannot become two tokens even if the progress is lost.

mod batch;
mod columns;
mod csv_input;
mod input;
mod line;
mod process;
mod processors;
mod renew;
mod store;

use std::io::Read;

use cloakroom_core::access::Tenant;
use cloakroom_core::keys;
use cloakroom_crypto::named_uuid_bytes;
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::storage;
use cloakroom_tokens::tokens::{self, TokenVault};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

pub use self::columns::{ColumnMap, Columns};
use self::input::{Batch, Records};
use self::process::Context;
pub use self::processors::Processor;
pub use self::renew::{RenewedUntil, renew_macs};
pub(super) use self::store::STATEMENTS;
use super::PrivateKey;
use super::export::Chunk;

const NAME_CHARS_MAX: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the name of an import must have 1 to 100 printable characters, and contain no card number"
    )]
    Name,
    #[error("line {line}: {reason}")]
    Input { line: u64, reason: String },
    #[error("the CSV header cannot be used: {0}")]
    Columns(String),
    #[error(
        "the lines from {line} on differ from those that were imported under this name; use another name for another file \
         or other options"
    )]
    Differs { line: u64 },
    #[error(
        "the input ends before line {line}, which was imported under this name; use the same file"
    )]
    Shorter { line: u64 },
    #[error(
        "the input has {found} lines or records, not the {expected} of --lines; it may be truncated. The last batch was not \
         imported; run the same command again with the whole file"
    )]
    Truncated { expected: u64, found: u64 },
    #[error(
        "the input has more than the {expected} lines or records of --lines; the last batch was not imported"
    )]
    Longer { expected: u64 },
    #[error("the progress of the import at line {line} was changed outside the vault")]
    Altered { line: u64 },
    #[error(
        "a line from {line} on was imported before, but the progress of this import does not contain it: the table \
         import_batch was changed outside the vault"
    )]
    ProgressLost { line: u64 },
    #[error(
        "the lines from {line} on were imported before the control key was replaced, and can no longer be compared; import \
         the lines that are missing from a file of their own, under another name"
    )]
    KeyReplaced { line: u64 },
    #[error("another process runs the import of this name; wait for it, then run this one again")]
    Concurrent,
    #[error("the import was interrupted; run it again to continue")]
    Interrupted,
    #[error(transparent)]
    Tokens(tokens::Error),
    #[error("{0}; run the same command again: it continues where it was interrupted")]
    Storage(#[from] storage::Error),
}

impl Error {
    /// Why the database could not complete a statement for now.
    fn temporary(&self) -> Option<&storage::Error> {
        match self {
            Self::Storage(error) => Some(error).filter(|error| error.is_temporary()),
            _ => None,
        }
    }
}

impl From<tokens::Error> for Error {
    fn from(error: tokens::Error) -> Self {
        match error {
            tokens::Error::Storage(error) | tokens::Error::Keys(keys::Error::Storage(error)) => {
                Self::Storage(error)
            }
            other => Self::Tokens(other),
        }
    }
}

/// The format of the input.
#[derive(Clone, Debug)]
pub enum Format {
    /// One token per line, in the shape of a request that creates it.
    JsonLines,
    /// One card or other token per record, with a header.
    Csv(ColumnMap),
}

/// How to import.
pub struct Options {
    /// Identifies the import among those of the tenant.
    pub name: String,
    pub format: Format,
    /// The input consists of JWEs for this key, one per line.
    pub key: Option<PrivateKey>,
    /// The chunks that the input consists of, from a verified manifest. A file that was replaced after its verification is
    /// not decrypted.
    pub chunks: Option<Vec<Chunk>>,
    /// Ignore ids of the input and derive new ones.
    pub assigns_ids: bool,
    /// Deduplicate, whatever lines and the tenant's settings say.
    pub deduplicates: bool,
    /// Validate all lines and write nothing.
    pub is_dry_run: bool,
    /// The number of lines or records that the input must have.
    pub lines: Option<u64>,
    /// Batches that are processed at the same time.
    pub in_flight: usize,
    /// Called before a batch is repeated, with its first line and the reason.
    pub before_repetition: fn(u64, &storage::Error),
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let length = self.name.chars().count();
        let is_plain = !self.name.chars().any(char::is_control);
        let is_name = (1..=NAME_CHARS_MAX).contains(&length) && is_plain;
        match is_name && !contains_card_number(&self.name) {
            true => Ok(()),
            false => Err(Error::Name),
        }
    }

    /// What decides how a line becomes a token. An import cannot be continued with other options.
    fn digest_text(&self) -> String {
        let format = match &self.format {
            Format::JsonLines => "json".to_owned(),
            Format::Csv(map) => map.digest_text(),
        };
        format!("{format} {} {}", self.assigns_ids, self.deduplicates)
    }
}

/// Where and for whom to import.
pub struct Target {
    pub vault: TokenVault,
    pub tenant: Tenant,
    /// The application that the tokens name as their author.
    pub application: Uuid,
}

/// Counts of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub created: u64,
    pub duplicates: u64,
    pub rejected: u64,
    /// Security codes that were not imported.
    pub dropped_codes: u64,
    /// Of all lines, those that an earlier run has imported or rejected.
    pub earlier: u64,
}

impl Counts {
    pub fn lines(&self) -> u64 {
        self.created + self.duplicates + self.rejected
    }
}

/// A rejected line. It contains no data; the id only if it is not a card number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedLine {
    pub line: u64,
    pub id: Option<String>,
    pub reason: String,
}

/// A line whose token has another id than the input, or any line if new ids are assigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedLine {
    pub line: u64,
    /// The id of the input.
    pub id: Option<String>,
    /// The id of the token.
    pub token: String,
    pub is_duplicate: bool,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub struct BatchReport {
    pub counts: Counts,
    pub rejected: Vec<RejectedLine>,
    pub mapped: Vec<MappedLine>,
}

/// The id of an import.
fn import_id(tenant: &Tenant, name: &str) -> Uuid {
    let name = format!("import {name}");
    Uuid::from_bytes(named_uuid_bytes(tenant.id.uuid.as_bytes(), &name))
}

/// Imports everything that `input` contains. `report` receives the outcome of every batch, also of those that an earlier
/// run has committed, in no particular order.
pub async fn run(
    target: Target,
    options: Options,
    input: impl Read + Send + 'static,
    mut report: impl FnMut(BatchReport),
) -> Result<Counts, Error> {
    options.check()?;
    let id = import_id(&target.tenant, &options.name);
    let in_flight = options.in_flight.max(1);
    let context = Context::new(target, options, id);
    let known = store::list(&context.vault.db, context.tenant(), id).await?;
    let (sender, mut batches) = mpsc::channel(1);
    let mut reader = JoinSet::new();
    let records = Records::new(input, context.clone(), known);
    reader.spawn_blocking(move || read_all(records, &sender));
    let mut running = JoinSet::new();
    let imported = async {
        let (mut counts, mut verifies) = (Counts::default(), false);
        loop {
            while running.len() >= in_flight {
                finish_one(&mut running, &mut counts, &mut report).await?;
            }
            let Some(batch) = batches.recv().await else {
                break;
            };
            let batch: Batch = batch?;
            // Batches of an earlier run are verified before later ones are committed: the input may be another one.
            if batch.known.is_none() && std::mem::take(&mut verifies) {
                finish_all(&mut running, &mut counts, &mut report).await?;
            }
            verifies |= batch.known.is_some();
            let context = context.clone();
            running.spawn(async move { context.process(batch).await });
        }
        finish_all(&mut running, &mut counts, &mut report).await?;
        Ok(counts)
    };
    let imported = imported.await;
    // Writes are never canceled, even if another batch failed.
    while running.join_next().await.is_some() {}
    imported
}

/// Reads batches on a thread that may block, until the input ends or the import stops.
fn read_all<R: Read>(records: Records<R>, sender: &mpsc::Sender<Result<Batch, Error>>) {
    for batch in records {
        let is_last = batch.is_err();
        if sender.blocking_send(batch).is_err() || is_last {
            return;
        }
    }
}

async fn finish_all(
    running: &mut JoinSet<Result<BatchReport, Error>>,
    counts: &mut Counts,
    report: &mut impl FnMut(BatchReport),
) -> Result<(), Error> {
    while !running.is_empty() {
        finish_one(running, counts, report).await?;
    }
    Ok(())
}

async fn finish_one(
    running: &mut JoinSet<Result<BatchReport, Error>>,
    counts: &mut Counts,
    report: &mut impl FnMut(BatchReport),
) -> Result<(), Error> {
    let Some(finished) = running.join_next().await else {
        return Ok(());
    };
    let finished = finished.map_err(|_| Error::Interrupted)??;
    let batch = finished.counts;
    counts.created += batch.created;
    counts.duplicates += batch.duplicates;
    counts.rejected += batch.rejected;
    counts.dropped_codes += batch.dropped_codes;
    counts.earlier += batch.earlier;
    report(finished);
    Ok(())
}
