//! Audit log: who did what to which entity, with which outcome.
//!
//! Entries are written in three ways only:
//! - A change is recorded in the transaction that makes it: [`begin`] and [`AuditedTransaction::commit`], or,
//!   for a single-statement change, [`begin_statement`] and the macro `audited!`.
//! - A revealed value is recorded before the response is sent: [`Audit::record`].
//! - A read without sensitive data is recorded within a second: [`Audit::enqueue`].
//!
//! Each commit is signed as a batch of a hash chain (`chain`), with a key of the node that changes daily and that the audit
//! authority of the vault certified. Checkpoints (`checkpoint`) commit to the heads of all chains and are shipped to a second
//! system. [`verify`] and [`verify_export`] check all of it. [`retain`] removes expired days as a whole.

mod archive;
mod audited;
mod chains;
mod checkpoints;
mod count;
mod cursor;
mod deleted;
mod entry;
mod list;
mod operator;
mod recorder;
mod retain;
mod store;
mod stream;
mod verify;

use std::sync::Arc;

use cloakroom_platform::api::ApiError;
use cloakroom_platform::config::{self, Config};
use cloakroom_platform::storage::{self, DatabaseClock, Db};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

pub use self::archive::{ArchiveError, ArchivedDay, archive};
pub use self::audited::{AuditedStatement, AuditedTransaction, audited, begin, begin_statement};
pub use self::chains::chain::ChainWriter;
use self::chains::chain::Chains;
pub use self::chains::day::{ChainId, day_number, parse_day};
use self::chains::{chain, chain_entry, day, link, walk};
pub use self::checkpoints::access_summary::{AccessSummary, access_summary};
pub use self::checkpoints::checkpoint::{CheckpointError, Halt};
use self::checkpoints::checkpoint::{CheckpointMemory, Due};
pub use self::checkpoints::shipment::{Shipment, unshipped};
use self::checkpoints::{access_summary, checkpoint, close_day, note, state};
pub use self::count::count_active_tokens;
pub use self::deleted::{ListDeletedError, list_deleted};
pub use self::entry::{ActorKind, EntityKind, Entry, Operation, Outcome, VAULT, encode_reads};
pub use self::list::{
    Filter, ListError, LogEntry, LogPage, PageRequest, PageStart, is_deleted, list,
};
pub use self::operator::Operator;
use self::recorder::{Message, QUEUE_MAX, ReadBatcher, ReadRecorder};
pub use self::retain::{measure, retain};
pub(crate) use self::store::STATEMENTS;
pub use self::store::logged;
pub use self::stream::{StreamPage, StreamPosition, read_stream_page};
pub use self::verify::export::{Error as ExportError, export, read_records};
pub use self::verify::finding::Finding;
pub use self::verify::received::read_received;
pub use self::verify::synthetic::{SyntheticLog, write_synthetic};
pub use self::verify::{
    ALL_DAYS, TrustedCheckpoints, VerificationReport, checkpoint_line, verify, verify_export,
};
use self::verify::{export, finding};
use crate::caller::Caller;
use crate::keys::{AuthorityKey, ControlKey, Keyring};

/// The operation was rejected because it could not be recorded in the audit log.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the operation could not be recorded in the audit log and was rejected")]
pub struct AuditError;

impl From<AuditError> for ApiError {
    fn from(_: AuditError) -> Self {
        Self::unavailable(
            "audit_unavailable",
            "The request could not be recorded in the audit log; retry later.",
        )
    }
}

/// The chain writers of a node. Can be cloned into tasks that outlive a request.
#[derive(Clone)]
pub struct ChainWriters {
    db: Db,
    clock: Arc<DatabaseClock>,
    /// Authenticates the events of entries.
    key: Arc<ControlKey>,
    chains: Arc<Chains>,
}

impl ChainWriters {
    /// Acquires a chain writer, for a statement that inserts its own audit entries.
    pub async fn acquire(&self) -> Result<ChainWriter<'_>, storage::Error> {
        self.chains.acquire(&self.db).await
    }
}

/// The audit log of this node.
pub struct Audit {
    /// For connections that outlive the pool's deadlines.
    database: config::Database,
    keep_days: usize,
    environment: String,
    checkpoints: tokio::sync::Mutex<CheckpointMemory>,
    writers: ChainWriters,
    reads: ReadBatcher,
    queue: mpsc::Sender<Message>,
    records_reads: bool,
    _background_writer: JoinSet<()>,
}

impl Audit {
    /// The public keys of the audit authority, the active one first.
    fn authorities(&self) -> Vec<AuthorityKey> {
        self.writers.chains.authority().public_keys().to_vec()
    }

    /// Starts the background writer, which stops when this is dropped.
    pub fn start(config: &Config, db: &Db, clock: &Arc<DatabaseClock>, keys: &Keyring) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        let writers = ChainWriters {
            db: db.clone(),
            clock: clock.clone(),
            key: keys.shared_control(),
            chains: Arc::new(Chains::new(
                clock.clone(),
                keys.audit_authority().clone(),
                config.database.max_connections,
                config.database.acquire_timeout,
            )),
        };
        let mut background_writer = JoinSet::new();
        background_writer.spawn(recorder::run(writers.clone(), messages));
        Self {
            database: config.database.clone(),
            keep_days: config.audit.keep_days,
            environment: config.vault.environment.as_str().to_owned(),
            checkpoints: tokio::sync::Mutex::default(),
            reads: ReadRecorder::batched(&writers, &config.database),
            writers,
            queue,
            records_reads: config.audit.record_reads,
            _background_writer: background_writer,
        }
    }

    /// Names `operator` as the origin of all system entries of this process. For CLI commands; only
    /// the first call has an effect.
    pub fn set_operator(&self, operator: Operator) {
        // A second operator in one process is a programming error and does not replace the first.
        let _ = self.writers.chains.operator.set(operator);
    }

    /// Acquires a chain writer, for a statement that inserts its own audit entries.
    pub async fn chain_writer(&self) -> Result<ChainWriter<'_>, storage::Error> {
        self.writers.acquire().await
    }

    /// The chain writers, for tasks that outlive a request.
    pub fn chain_writers(&self) -> &ChainWriters {
        &self.writers
    }

    /// Records reads. Returns once they are durable if any of them revealed data, and at once
    /// otherwise.
    pub async fn record_reads(&self, entries: Vec<Entry>) -> Result<(), AuditError> {
        match entries.iter().any(Entry::is_revealed) {
            true => self.record(entries).await,
            false => self.enqueue(entries).await,
        }
    }

    /// Records entries durably. Must return before the response is sent.
    pub async fn record(&self, entries: Vec<Entry>) -> Result<(), AuditError> {
        if !self.records_reads || entries.is_empty() {
            return Ok(());
        }
        let count = entries.len();
        match self.reads.process(entries).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(AuditError),
            Err(_) => {
                recorder::report_failure("no_record_begun_in_time", count);
                Err(AuditError)
            }
        }
    }

    /// Records the replay of a stored response as reads of all that it shows.
    pub async fn record_replay(&self, caller: &Caller, reads: &[u8]) -> Result<(), AuditError> {
        let entries = entry::decode_reads(caller, reads).ok_or(AuditError)?;
        self.record(entries).await
    }

    /// Queues entries to be recorded within a second. The response may be sent first.
    pub async fn enqueue(&self, mut entries: Vec<Entry>) -> Result<(), AuditError> {
        if !self.records_reads || entries.is_empty() {
            return Ok(());
        }
        let at = self.writers.clock.now().await.ok();
        for entry in &mut entries {
            entry.at = at;
        }
        let message = Message::Entries(entries);
        self.queue.send(message).await.map_err(|_| AuditError)
    }

    /// Returns once all queued entries are durable, or fails if they cannot be written now.
    pub async fn flush(&self) -> Result<(), AuditError> {
        let (waiter, recorded) = oneshot::channel();
        let flush = Message::Flush(waiter);
        self.queue.send(flush).await.map_err(|_| AuditError)?;
        match recorded.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(AuditError),
        }
    }

    /// Resynchronizes with the database's clock.
    pub async fn synchronize_clock(&self) -> Result<(), storage::Error> {
        self.writers.clock.synchronize().await?;
        Ok(())
    }

    /// Writes queued entries and closes this node's chains, at shutdown.
    pub async fn close(&self) {
        // Failures to write are logged by the writer.
        let _ = self.flush().await;
        self.writers.chains.close().await;
        if let Err(error) = self.write_checkpoint(Due::IfChanged).await {
            tracing::error!(
                error.kind = error.kind(),
                "the last checkpoint of the audit log could not be written at shutdown"
            );
        }
    }
}
