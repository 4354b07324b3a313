//! Processes a batch: parse, validate, and write its tokens together with its progress.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::access::AuthenticatedRow as _;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::ControlKey;
use cloakroom_crypto::content_digest;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};
use cloakroom_tokens::attributes::TokenId;
use cloakroom_tokens::tokens::{
    self, BatchRecord, ImportLine, ImportToken, Imported, TokenVault, reasons,
};
use tokio::time::sleep;
use uuid::Uuid;

use super::batch::{Outcomes, StoredBatch};
use super::input::{Batch, Record};
use super::line::{Line, shown_id};
use super::{BatchReport, Counts, Error, MappedLine, Options, RejectedLine, Target, store};
use crate::transfer::operator_caller;

/// How long to wait before each repetition of a batch. Together they are longer than the failover of a database.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
const CONTENT_DOMAIN: &str = "import.content.v1";

/// What all batches of an import share.
pub(super) struct Context {
    pub vault: TokenVault,
    pub options: Options,
    caller: Caller,
    id: Uuid,
}

/// A line after parsing.
struct Parsed {
    line: u64,
    /// The id of the input, if it may be shown.
    id: Option<String>,
    token: Result<ImportToken, String>,
}

impl Context {
    pub(super) fn new(target: Target, options: Options, id: Uuid) -> Arc<Self> {
        Arc::new(Self {
            caller: operator_caller(&target.vault, &target.tenant, target.application),
            vault: target.vault,
            options,
            id,
        })
    }

    pub(super) fn tenant(&self) -> TenantId {
        self.caller.tenant
    }

    fn control(&self) -> &ControlKey {
        self.vault.keys.control()
    }

    /// Imports a batch, or reports it if an earlier run has committed it. Waits while the database is unavailable.
    pub(super) async fn process(&self, batch: Batch) -> Result<BatchReport, Error> {
        let mut report = match &batch.known {
            Some((known, row_mac)) => self.skip(&batch, known, row_mac)?,
            None => self.import_with_retries(&batch).await?,
        };
        batch.number_lines(&mut report);
        Ok(report)
    }

    /// Imports a batch. Repeats it while the database is unavailable.
    async fn import_with_retries(&self, batch: &Batch) -> Result<BatchReport, Error> {
        let mut outcome = self.import(batch).await;
        for pause in PAUSES {
            let failure = outcome.as_ref().err();
            let Some(reason) = failure.and_then(Error::temporary) else {
                break;
            };
            (self.options.before_repetition)(batch.shown_line(), reason);
            sleep(pause).await;
            outcome = self.repeat(batch).await;
        }
        outcome
    }

    /// Repeats a batch whose commit failed or is uncertain. If it was committed nevertheless, it is reported and not
    /// imported again.
    async fn repeat(&self, batch: &Batch) -> Result<BatchReport, Error> {
        if let Some(report) = self.find_committed(batch).await? {
            return Ok(report);
        }
        match self.import(batch).await {
            // The first attempt was committed after the search for it.
            Err(Error::Concurrent) => {
                let report = self.find_committed(batch).await?;
                report.ok_or(Error::Concurrent)
            }
            outcome => outcome,
        }
    }

    async fn find_committed(&self, batch: &Batch) -> Result<Option<BatchReport>, Error> {
        let (db, line) = (&self.vault.db, batch.first_line());
        let Some((known, row_mac)) = store::find(db, self.tenant(), self.id, line).await? else {
            return Ok(None);
        };
        let mut report = self.skip(batch, &known, &row_mac)?;
        // Another process may have committed it for the same lines: then both count it.
        report.counts.earlier = 0;
        Ok(Some(report))
    }

    async fn import(&self, batch: &Batch) -> Result<BatchReport, Error> {
        match self.try_import(batch).await {
            Err(Error::Tokens(tokens::Error::IdTaken)) => Err(self.explain_taken(batch).await?),
            Err(Error::Storage(error)) if error.is_conflict("import_batch_pkey") => {
                Err(Error::Concurrent)
            }
            imported => imported,
        }
    }

    /// Why tokens with the derived ids of a batch exist: another process has committed the batch meanwhile, or its
    /// progress is lost.
    async fn explain_taken(&self, batch: &Batch) -> Result<Error, Error> {
        let (db, line) = (&self.vault.db, batch.first_line());
        let known = store::find(db, self.tenant(), self.id, line).await?;
        let line = batch.shown_line();
        Ok(match known {
            Some(_) => Error::Concurrent,
            None => Error::ProgressLost { line },
        })
    }

    /// Reports a batch that an earlier run has committed, if it was committed for these lines.
    fn skip(
        &self,
        batch: &Batch,
        known: &StoredBatch,
        row_mac: &[u8],
    ) -> Result<BatchReport, Error> {
        let line = batch.shown_line();
        let report = known
            .report()
            .filter(|_| known.is_genuine(self.control(), row_mac));
        let mut report = report.ok_or(Error::Altered { line })?;
        if !self.control().has_version_of(&known.content_mac) {
            return Err(Error::KeyReplaced { line });
        }
        let options = self.options.digest_text();
        let parts = content_parts(&options, &batch.records);
        let is_same = self
            .control()
            .verifies(CONTENT_DOMAIN, &parts, &known.content_mac);
        if !is_same || batch.records.len() != usize::try_from(known.lines).unwrap_or_default() {
            return Err(Error::Differs { line });
        }
        if self.options.assigns_ids {
            self.map_skipped(batch, &mut report);
        }
        Ok(report)
    }

    /// Adds the ids of tokens that an earlier run has created: they are derived from their lines.
    fn map_skipped(&self, batch: &Batch, report: &mut BatchReport) {
        for record in &batch.records {
            let is_rejected = report.rejected.iter().any(|it| it.line == record.line);
            let is_duplicate = report.mapped.iter().any(|it| it.line == record.line);
            if is_rejected || is_duplicate {
                continue;
            }
            let parsed = Line::parse(record.text.expose()).ok();
            let id = parsed.and_then(|line| line.new.id);
            report.mapped.push(MappedLine {
                line: record.line,
                id: shown_id(id.as_deref()),
                token: self.derived_id(record.line).to_string(),
                is_duplicate: false,
            });
        }
    }

    async fn try_import(&self, batch: &Batch) -> Result<BatchReport, Error> {
        let mut parsed = Vec::with_capacity(batch.records.len());
        for record in &batch.records {
            parsed.push(self.parse(record).await?);
        }
        let options = self.options.digest_text();
        let parts = content_parts(&options, &batch.records);
        let content_mac = self.control().authenticate(CONTENT_DOMAIN, &parts);
        let (lines, tokens): (Vec<_>, Vec<_>) = parsed
            .into_iter()
            .map(|parsed| ((parsed.line, parsed.id), parsed.token))
            .unzip();
        let codes = tokens.iter().flatten();
        let progress = Progress {
            context: self,
            lines,
            content_mac: content_mac.to_vec(),
            dropped_codes: codes.filter(|token| token.has_security_code).count(),
        };
        let outcomes = match self.options.is_dry_run {
            true => tokens::plan_import(&self.vault, &self.caller, &tokens).await?,
            false => tokens::import(&self.vault, &self.caller, &tokens, &progress).await?,
        };
        Ok(progress.report(&outcomes))
    }

    /// Parses and validates a line. Only errors of the vault are returned as such.
    async fn parse(&self, record: &Record) -> Result<Parsed, Error> {
        let line = record.line;
        let rejected = |id, reason| {
            let token = Err(reason);
            Ok(Parsed { line, id, token })
        };
        if let Some(problem) = record.problem {
            return rejected(None, problem.to_owned());
        }
        let mut parsed = match Line::parse(record.text.expose()) {
            Ok(parsed) => parsed,
            Err(error) => return rejected(None, reasons(&[error])),
        };
        let given = parsed.new.id.clone();
        let id = shown_id(given.as_deref());
        if self.options.assigns_ids {
            if given.is_some() && id.is_none() {
                return rejected(None, "id: must not contain a card number".to_owned());
            }
            parsed.new.id = None;
        }
        if self.options.deduplicates {
            parsed.new.deduplicate_token = Some(true);
        }
        let line_of_import = ImportLine {
            new: parsed.new,
            derived_id: self.derived_id(line),
            has_no_mask: parsed.has_no_mask,
        };
        match line_of_import.validate(&self.vault, &self.caller).await {
            Ok(token) => Ok(Parsed {
                line,
                id,
                token: Ok(token),
            }),
            Err(tokens::Error::Invalid(broken)) => rejected(id, reasons(&broken)),
            Err(error) => Err(error.into()),
        }
    }

    /// The id of a line without one: always the same for the same line of the same import, and a UUID of version 4, because
    /// the official clients accept no later version.
    fn derived_id(&self, line: u64) -> TokenId {
        let mut content = self.id.into_bytes().to_vec();
        content.extend(line.to_be_bytes());
        let digest = content_digest(&content);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
        TokenId::of(self.tenant(), &id.to_string())
    }
}

/// What the content MAC of a batch covers.
fn content_parts<'a>(options: &'a str, records: &'a [Record]) -> Vec<&'a [u8]> {
    let lines = records.iter().map(|record| record.text.expose().as_bytes());
    std::iter::once(options.as_bytes()).chain(lines).collect()
}

/// The progress of a batch, inserted with its tokens.
struct Progress<'a> {
    context: &'a Context,
    /// Number and shown id of each line.
    lines: Vec<(u64, Option<String>)>,
    content_mac: Vec<u8>,
    dropped_codes: usize,
}

impl Progress<'_> {
    fn outcomes(&self, imported: &[Imported]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for ((line, id), imported) in self.lines.iter().zip(imported) {
            match imported {
                Imported::Created(_) => {}
                Imported::Duplicate(token) => outcomes.duplicates.push(MappedLine {
                    line: *line,
                    id: id.clone(),
                    token: token.to_string(),
                    is_duplicate: true,
                }),
                Imported::Rejected(reason) => outcomes.rejected.push(RejectedLine {
                    line: *line,
                    id: id.clone(),
                    reason: reason.clone(),
                }),
            }
        }
        outcomes
    }

    fn report(&self, imported: &[Imported]) -> BatchReport {
        let outcomes = self.outcomes(imported);
        let mut mapped = outcomes.duplicates;
        let counts = Counts {
            created: count_created(imported) as u64,
            duplicates: mapped.len() as u64,
            rejected: outcomes.rejected.len() as u64,
            dropped_codes: self.dropped_codes as u64,
            earlier: 0,
        };
        if self.context.options.assigns_ids {
            let created = self
                .lines
                .iter()
                .zip(imported)
                .filter_map(|(line, imported)| {
                    let Imported::Created(token) = imported else {
                        return None;
                    };
                    Some(MappedLine {
                        line: line.0,
                        id: line.1.clone(),
                        token: token.to_string(),
                        is_duplicate: false,
                    })
                });
            mapped.extend(created);
        }
        BatchReport {
            counts,
            rejected: outcomes.rejected,
            mapped,
        }
    }
}

fn count_created(imported: &[Imported]) -> usize {
    let is_created = |it: &&Imported| matches!(it, Imported::Created(_));
    imported.iter().filter(is_created).count()
}

impl BatchRecord for Progress<'_> {
    async fn insert(
        &self,
        transaction: &Transaction,
        imported: &[Imported],
    ) -> Result<Entry, storage::Error> {
        let outcomes = self.outcomes(imported);
        let (first, last) = (self.lines.first(), self.lines.last());
        let first = first.map_or(0, |line| line.0);
        let last = last.map_or(0, |line| line.0);
        let created = count_created(imported);
        let tenant = self.context.tenant();
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let batch = StoredBatch {
            tenant: tenant.number,
            import: self.context.id,
            first_line: first.cast_signed(),
            lines: number(self.lines.len()),
            created: number(created),
            dropped_codes: number(self.dropped_codes),
            content_mac: self.content_mac.clone(),
            // Numbers and strings can always be serialized.
            outcomes: serde_json::to_string(&outcomes).unwrap_or_default(),
        };
        let row_mac = batch.row_mac(self.context.control());
        store::insert(transaction, &batch, &row_mac).await?;
        let id = format!(
            "{} lines {first}-{last}: {created} created, {} duplicates, {} rejected",
            self.context.options.name,
            outcomes.duplicates.len(),
            outcomes.rejected.len(),
        );
        let (operation, entity) = (Operation::Create, EntityKind::Import);
        Ok(Entry::by_system(tenant.number, operation, entity, id))
    }
}
