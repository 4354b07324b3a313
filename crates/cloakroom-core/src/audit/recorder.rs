//! Writes audit entries of reads, batched into few commits.
//!
//! Entries that a response waits for are written at once on an idle node and batched on a busy one.
//! Entries that no response waits for are delayed briefly, so that a commit carries many of them.

use std::time::Duration;

use cloakroom_platform::batching::{BatchHandler, BatchLimits, Batcher};
use cloakroom_platform::config::Database;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::entry::{Entry, encode_events};
use super::{ChainWriters, store};

/// Entries in one commit, unless a single request has more. Signing a thousand would block requests
/// for tens of milliseconds.
const BATCH_MAX: usize = 200;
/// Approximate maximum size of an entry without its event.
const ENTRY_BYTES: usize = 300;
/// Approximate size of the event of a read.
const READ_EVENT_BYTES: usize = 500;
/// Capacity of the queue; when it is full, senders wait.
pub(super) const QUEUE_MAX: usize = 10_000;
/// How long queued entries wait for others. Well below the second within which they must be
/// recorded.
const BATCH_DELAY: Duration = Duration::from_millis(250);
/// Delay between attempts while entries cannot be written.
const RETRY_DELAY: Duration = Duration::from_millis(200);

type WriteResult = Result<(), storage::Error>;

/// Entries that must be durable before the response is sent.
pub(super) type ReadBatcher = Batcher<ReadRecorder>;

/// Writes the entries of a batch, all or none.
pub(super) struct ReadRecorder {
    writers: ChainWriters,
}

impl ReadRecorder {
    pub(super) fn batched(writers: &ChainWriters, settings: &Database) -> ReadBatcher {
        // One batch at a time: commits are serialized by the disk, and two batches would be half as
        // large.
        let limits = BatchLimits {
            max_in_flight: 1,
            max_bytes: BATCH_MAX * (ENTRY_BYTES + READ_EVENT_BYTES),
            ..BatchLimits::for_statements(settings.max_connections, settings.acquire_timeout)
        };
        Batcher::new(
            Self {
                writers: writers.clone(),
            },
            limits,
        )
    }
}

impl BatchHandler for ReadRecorder {
    type Item = Vec<Entry>;
    type Output = WriteResult;

    const NAME: &'static str = "records";
    /// A client that disconnects must not end a chain: the next writer would have to open another.
    const COMPLETES: bool = true;

    async fn process(&self, items: Vec<Vec<Entry>>) -> Vec<WriteResult> {
        let requests = items.len();
        let entries: Vec<Entry> = items.into_iter().flatten().collect();
        let written = write(&self.writers, &entries).await;
        if let Err(error) = &written {
            report_failure(error.kind(), entries.len());
        }
        vec![written; requests]
    }

    fn size_bytes(entries: &Vec<Entry>) -> usize {
        let events: usize = entries.iter().map(Entry::event_bytes).sum();
        entries.len() * ENTRY_BYTES + events
    }
}

/// Input of the background writer.
pub(super) enum Message {
    Entries(Vec<Entry>),
    /// Notified once all earlier entries are durable, or cannot be written now.
    Flush(oneshot::Sender<WriteResult>),
}

/// Content of one commit.
#[derive(Default)]
struct Batch {
    /// Retained until they are written.
    entries: Vec<Entry>,
    waiters: Vec<oneshot::Sender<WriteResult>>,
}

impl Batch {
    fn add(&mut self, message: Message) {
        match message {
            Message::Entries(entries) => self.entries.extend(entries),
            Message::Flush(waiter) => self.waiters.push(waiter),
        }
    }

    /// Takes messages from the queue; waits only if the batch is empty. Returns false once the
    /// queue is closed.
    async fn fill(&mut self, queue: &mut mpsc::Receiver<Message>) -> bool {
        if self.entries.is_empty() && self.waiters.is_empty() {
            let Some(first) = queue.recv().await else {
                return false;
            };
            self.add(first);
        }
        self.wait_for_more(queue).await;
        while self.entries.len() < BATCH_MAX
            && let Ok(message) = queue.try_recv()
        {
            self.add(message);
        }
        true
    }

    /// Waits briefly for more entries: a commit for each would cost more than the reads.
    async fn wait_for_more(&mut self, queue: &mut mpsc::Receiver<Message>) {
        let end = Instant::now() + BATCH_DELAY;
        while self.waiters.is_empty()
            && self.entries.len() < BATCH_MAX
            && let Ok(Some(message)) = timeout_at(end, queue.recv()).await
        {
            self.add(message);
        }
    }
}

/// Writes queued entries until all senders are dropped.
pub(super) async fn run(writers: ChainWriters, mut queue: mpsc::Receiver<Message>) {
    let mut batch = Batch::default();
    while batch.fill(&mut queue).await {
        let written = write(&writers, &batch.entries).await;
        for waiter in batch.waiters.drain(..) {
            // The receiver may be dropped; nothing depends on it.
            let _ = waiter.send(written.clone());
        }
        match written {
            Ok(()) => batch.entries.clear(),
            Err(error) => {
                report_failure(error.kind(), batch.entries.len());
                // An entry that the database rejects must not block the others.
                if matches!(error, storage::Error::Rejected { .. }) {
                    write_one_by_one(&writers, &mut batch.entries).await;
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

async fn write(writers: &ChainWriters, entries: &[Entry]) -> WriteResult {
    if entries.is_empty() {
        return Ok(());
    }
    let mut writer = writers.acquire().await?;
    let rows = writer.append(entries);
    let events = encode_events(&writers.key, entries);
    let written = store::insert(&writers.db, &rows, &events).await;
    writer.commit_if_written(&written, |()| true);
    if written.is_ok() {
        catalog::AUDIT_ENTRIES.increment(entries.len() as u64);
        catalog::AUDIT_ENTRIES_PER_COMMIT.record(entries.len() as f64);
    }
    written
}

/// Writes each entry by itself, and logs and drops those that the database rejects.
async fn write_one_by_one(writers: &ChainWriters, entries: &mut Vec<Entry>) {
    let mut unwritten = Vec::new();
    for entry in entries.drain(..) {
        match write(writers, std::slice::from_ref(&entry)).await {
            Ok(()) => {}
            Err(storage::Error::Rejected { .. }) => {
                catalog::AUDIT_ENTRIES_LOST.increment(1);
                tracing::error!(
                    error.kind = "audit_record_refused",
                    "the database rejected the audit entry of a masked read; the entry is lost"
                );
            }
            Err(_) => unwritten.push(entry),
        }
    }
    *entries = unwritten;
}

/// Logs and counts that entries of reads could not be written.
pub(super) fn report_failure(kind: &str, waiting: usize) {
    catalog::AUDIT_WRITE_FAILURES.increment(1);
    tracing::error!(
        error.kind = kind,
        waiting,
        "reads cannot be recorded in the audit log; nothing is revealed until they can"
    );
}
