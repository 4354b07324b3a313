//! The writers of what was read: many records in one commit.
//!
//! What somebody waits for is recorded at once on an idle node, and together with others on a busy one. What nobody
//! waits for stays for a moment, so that a commit carries much of it.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::entry::Entry;
use super::{Pens, store};
use crate::config::Database;
use crate::convoy::{Convoy, Load, Size};
use crate::storage;

/// Records in one commit, unless a single reader brings more. Signing a thousand would hold up requests for
/// tens of milliseconds.
const BATCH: usize = 200;
/// What a record takes up at most, more or less.
const RECORD_BYTES: usize = 300;
/// Readers that may have something waiting; beyond it, they wait as well.
pub(super) const QUEUE: usize = 10_000;
/// How long notes may wait for others. Well below the second within which they are recorded.
const GATHER: Duration = Duration::from_millis(250);
/// Between attempts when records cannot be kept.
const PAUSE: Duration = Duration::from_millis(200);

type Written = Result<(), storage::Error>;

/// Records that no answer leaves before.
pub(super) type Awaited = Convoy<Recording>;

/// Writes records, all of them or none.
pub(super) struct Recording {
    pens: Pens,
}

impl Recording {
    pub(super) fn in_convoy(pens: &Pens, settings: &Database) -> Awaited {
        // One trip at a time: a disk takes one commit after the other, and two trips would share it half as often.
        let size = Size {
            lanes: 1,
            bytes: BATCH * RECORD_BYTES,
            ..Size::of_statements(settings.max_connections, settings.acquire_timeout)
        };
        Convoy::new(Self { pens: pens.clone() }, size)
    }
}

impl Load for Recording {
    type Item = Vec<Entry>;
    type Answer = Written;

    const NAME: &'static str = "records";
    /// A client that leaves before its answer must not end a chain: the next writer would have to begin another.
    const ARRIVES: bool = true;

    async fn carry(&self, items: Vec<Vec<Entry>>) -> Vec<Written> {
        let readers = items.len();
        let entries: Vec<Entry> = items.into_iter().flatten().collect();
        let written = write(&self.pens, &entries).await;
        if let Err(error) = &written {
            tell(error.kind(), entries.len());
        }
        vec![written; readers]
    }

    fn bytes(entries: &Vec<Entry>) -> usize {
        entries.len() * RECORD_BYTES
    }
}

/// Something for the writer of notes.
pub(super) enum Waiting {
    Notes(Vec<Entry>),
    /// Somebody who waits until all before is durable, or cannot be made so.
    Flush(oneshot::Sender<Written>),
}

/// What goes into one commit.
#[derive(Default)]
struct Batch {
    /// They stay until they are kept.
    notes: Vec<Entry>,
    waiters: Vec<oneshot::Sender<Written>>,
}

impl Batch {
    fn add(&mut self, waiting: Waiting) {
        match waiting {
            Waiting::Notes(entries) => self.notes.extend(entries),
            Waiting::Flush(waiter) => self.waiters.push(waiter),
        }
    }

    /// Takes what is waiting; waits for something only if there is nothing to do. False at the end.
    async fn fill(&mut self, queue: &mut mpsc::Receiver<Waiting>) -> bool {
        if self.notes.is_empty() && self.waiters.is_empty() {
            let Some(first) = queue.recv().await else {
                return false;
            };
            self.add(first);
        }
        self.gather(queue).await;
        while self.notes.len() < BATCH
            && let Ok(waiting) = queue.try_recv()
        {
            self.add(waiting);
        }
        true
    }

    /// Notes stay for a moment: a commit for each would cost more than the reads.
    async fn gather(&mut self, queue: &mut mpsc::Receiver<Waiting>) {
        let end = Instant::now() + GATHER;
        while self.waiters.is_empty()
            && self.notes.len() < BATCH
            && let Ok(Some(waiting)) = timeout_at(end, queue.recv()).await
        {
            self.add(waiting);
        }
    }
}

/// Writes notes until nobody can send any more.
pub(super) async fn run(pens: Pens, mut queue: mpsc::Receiver<Waiting>) {
    let mut batch = Batch::default();
    while batch.fill(&mut queue).await {
        let written = write(&pens, &batch.notes).await;
        for waiter in batch.waiters.drain(..) {
            // Whoever no longer waits does not need to know.
            let _ = waiter.send(written.clone());
        }
        match written {
            Ok(()) => batch.notes.clear(),
            Err(error) => {
                tell(error.kind(), batch.notes.len());
                // One that the database will never take must not hold up the others.
                if matches!(error, storage::Error::Refused { .. }) {
                    write_one_by_one(&pens, &mut batch.notes).await;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn write(pens: &Pens, entries: &[Entry]) -> Written {
    if entries.is_empty() {
        return Ok(());
    }
    let mut pen = pens.take().await?;
    let rows = pen.sign(entries);
    let written = store::insert(&pens.db, &rows).await;
    pen.settle(&written, |()| true);
    if written.is_ok() {
        metrics::counter!("audit_records_total").increment(entries.len() as u64);
        metrics::histogram!("audit_records_per_commit").record(entries.len() as f64);
    }
    written
}

/// Keeps what can be kept, and forgets, loudly, what the database refuses.
async fn write_one_by_one(pens: &Pens, notes: &mut Vec<Entry>) {
    let mut left = Vec::new();
    for note in notes.drain(..) {
        match write(pens, std::slice::from_ref(&note)).await {
            Ok(()) => {}
            Err(storage::Error::Refused { .. }) => {
                metrics::counter!("audit_records_lost_total").increment(1);
                tracing::error!(
                    error.kind = "audit_record_refused",
                    "the database refused a record of a masked read, which is lost"
                );
            }
            Err(_) => left.push(note),
        }
    }
    *notes = left;
}

/// Says that what was read is not recorded, and why.
pub(super) fn tell(kind: &str, waiting: usize) {
    metrics::counter!("audit_failures_total").increment(1);
    tracing::error!(
        error.kind = kind,
        waiting,
        "what was read cannot be recorded; nothing is revealed until it can"
    );
}
