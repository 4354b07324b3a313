//! The record of what was done: by whom, to what, with which outcome.
//!
//! Three ways lead into it, and nothing else writes to it:
//! - a change is recorded by the transaction that makes it: [`begin`] and [`Recorded::commit`], or, for
//!   a change that is one statement, a [`Pen`] and the macro `logged!`;
//! - a revealed value is recorded before it leaves: [`Audit::record`];
//! - what shows no sensitive data is recorded within a second: [`Audit::note`].
//!
//! Records are signed in chains (`chain`), which [`verify`] examines. Days that nobody may see any more
//! are removed as a whole by [`retain`].

mod api;
mod chain;
mod clock;
mod count;
mod cursor;
mod deleted;
mod entry;
mod list;
mod recorded;
mod recorder;
mod retain;
mod store;
mod verify;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

pub use self::api::routes;
use self::chain::Chains;
pub use self::chain::Pen;
pub use self::count::count_active_tokens;
pub(crate) use self::deleted::list_deleted;
pub(crate) use self::entry::told_again;
pub use self::entry::{ActorKind, EntityKind, Entry, Operation, Outcome};
pub use self::recorded::{Recorded, begin};
use self::recorder::{Awaited, QUEUE, Recording, Waiting};
pub use self::retain::retain;
pub(crate) use self::store::{STATEMENTS, logged};
pub use self::verify::{Anchor, Finding, Verified, verify};
use crate::caller::Caller;
use crate::config::Config;
use crate::keys::AuditKey;
use crate::storage::{self, Db};

/// Why something was not done: it could not be recorded.
#[derive(Clone, Debug, thiserror::Error)]
#[error("what was asked for cannot be recorded, and so is refused")]
pub struct Unrecorded;

/// The pens of a node, for whoever signs records in a task of its own.
#[derive(Clone)]
pub struct Pens {
    db: Db,
    key: Arc<AuditKey>,
    chains: Arc<Chains>,
}

impl Pens {
    /// Takes the right to sign records, for a statement that writes them itself.
    pub async fn take(&self) -> Result<Pen<'_>, storage::Error> {
        self.chains.pen(&self.db, &self.key).await
    }
}

/// A node's part in the record.
pub struct Audit {
    pens: Pens,
    awaited: Awaited,
    queue: mpsc::Sender<Waiting>,
    records_reads: bool,
    _writer: JoinSet<()>,
}

impl Audit {
    /// Starts the writer, which ends when this is dropped.
    pub(crate) fn start(config: &Config, db: &Db, key: &Arc<AuditKey>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let pens = Pens {
            db: db.clone(),
            key: key.clone(),
            chains: Arc::new(Chains::new(
                config.database.max_connections,
                config.database.acquire_timeout,
            )),
        };
        let mut writer = JoinSet::new();
        writer.spawn(recorder::run(pens.clone(), waiting));
        Self {
            awaited: Recording::in_convoy(&pens, &config.database),
            pens,
            queue,
            records_reads: config.audit.record_reads,
            _writer: writer,
        }
    }

    /// Takes the right to sign records, for a statement that writes them itself.
    pub async fn pen(&self) -> Result<Pen<'_>, storage::Error> {
        self.pens.take().await
    }

    /// The same right, for tasks that outlive a request.
    pub fn pens(&self) -> &Pens {
        &self.pens
    }

    /// The time by the database's clock, without asking it each time.
    pub async fn now(&self) -> Result<jiff::Timestamp, storage::Error> {
        self.pens.chains.clock.now(&self.pens.db).await
    }

    /// Records reads. Returns when they are durable if one of them revealed something, and at once
    /// otherwise.
    pub async fn read(&self, entries: Vec<Entry>) -> Result<(), Unrecorded> {
        match entries.iter().any(Entry::is_revealed) {
            true => self.record(entries).await,
            false => self.note(entries).await,
        }
    }

    /// Records what must not be answered before it is recorded.
    pub async fn record(&self, entries: Vec<Entry>) -> Result<(), Unrecorded> {
        if !self.records_reads || entries.is_empty() {
            return Ok(());
        }
        let count = entries.len();
        match self.awaited.join(entries).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Unrecorded),
            Err(_) => {
                recorder::tell("no_record_begun_in_time", count);
                Err(Unrecorded)
            }
        }
    }

    /// Records that an answer is given again, with all that it shows.
    pub async fn record_again(&self, caller: &Caller, told: &[u8]) -> Result<(), Unrecorded> {
        let entries = entry::reads_again(caller, told).ok_or(Unrecorded)?;
        self.record(entries).await
    }

    /// Records what may be answered first, within a second.
    pub async fn note(&self, mut entries: Vec<Entry>) -> Result<(), Unrecorded> {
        if !self.records_reads || entries.is_empty() {
            return Ok(());
        }
        let at = self.now().await.ok();
        for entry in &mut entries {
            entry.at = at;
        }
        let notes = Waiting::Notes(entries);
        self.queue.send(notes).await.map_err(|_| Unrecorded)
    }

    /// Returns when everything noted so far is durable, or cannot be made so.
    pub async fn flush(&self) -> Result<(), Unrecorded> {
        let (waiter, recorded) = oneshot::channel();
        let flush = Waiting::Flush(waiter);
        self.queue.send(flush).await.map_err(|_| Unrecorded)?;
        match recorded.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Unrecorded),
        }
    }

    /// Writes down how far the chains of this node reach, and listens to the database's clock.
    pub async fn tend(&self) -> Result<(), storage::Error> {
        self.pens.chains.clock.hear(&self.pens.db).await?;
        self.pens
            .chains
            .write_heads(&self.pens.db, &self.pens.key, false)
            .await
    }

    /// Records what is waiting and ends this node's chains. For the end of a node.
    pub async fn close(&self) {
        // What cannot be recorded now was logged as such.
        let _ = self.flush().await;
        if let Err(error) = self.pens.chains.close(&self.pens.db, &self.pens.key).await {
            tracing::error!(
                error.kind = error.kind(),
                "how far the last records reach could not be written down"
            );
        }
    }
}
