//! The writer of what was read: many records in one commit.
//!
//! What arrives while a commit is on its way goes into the next one, so an idle node records what
//! somebody waits for at once, and a busy one by the hundred.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::entry::Entry;
use super::{Pens, store};
use crate::storage;

/// Records in one commit, unless a single reader brings more. Signing a thousand would hold up requests for
/// tens of milliseconds.
const BATCH: usize = 200;
/// Readers that may have something waiting; beyond it, they wait as well.
pub(super) const QUEUE: usize = 10_000;
/// How long notes may wait for others. Well below the second within which they are recorded.
const GATHER: Duration = Duration::from_millis(250);
/// Between attempts when records cannot be kept.
const PAUSE: Duration = Duration::from_millis(200);

type Waiter = oneshot::Sender<Result<(), storage::Error>>;

/// Something to be recorded, and whoever lets no answer leave before it is.
pub(super) struct Waiting {
    pub entries: Vec<Entry>,
    pub waiter: Option<Waiter>,
}

/// What goes into one commit.
#[derive(Default)]
struct Batch {
    /// Entries that someone waits for. They are refused together if they cannot be kept.
    awaited: Vec<Entry>,
    waiters: Vec<Waiter>,
    /// Entries that nobody waits for. They stay until they are kept.
    notes: Vec<Entry>,
}

impl Batch {
    fn add(&mut self, waiting: Waiting) {
        match waiting.waiter {
            Some(waiter) => {
                self.awaited.extend(waiting.entries);
                self.waiters.push(waiter);
            }
            None => self.notes.extend(waiting.entries),
        }
    }

    fn len(&self) -> usize {
        self.awaited.len() + self.notes.len()
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
        while self.len() < BATCH
            && let Ok(waiting) = queue.try_recv()
        {
            self.add(waiting);
        }
        true
    }

    /// Notes that nobody waits for stay for a moment: a commit for each would cost more than the reads.
    async fn gather(&mut self, queue: &mut mpsc::Receiver<Waiting>) {
        let end = Instant::now() + GATHER;
        while self.waiters.is_empty()
            && self.len() < BATCH
            && let Ok(Some(waiting)) = timeout_at(end, queue.recv()).await
        {
            self.add(waiting);
        }
    }
}

/// Writes until nobody can send any more.
pub(super) async fn run(pens: Pens, mut queue: mpsc::Receiver<Waiting>) {
    let mut batch = Batch::default();
    while batch.fill(&mut queue).await {
        let entries: Vec<Entry> = batch.awaited.iter().chain(&batch.notes).cloned().collect();
        let written = write(&pens, &entries).await;
        batch.awaited.clear();
        for waiter in batch.waiters.drain(..) {
            // Whoever no longer waits has given up the answer.
            let _ = waiter.send(written.clone());
        }
        match written {
            Ok(()) => batch.notes.clear(),
            Err(error) => {
                tell(&error, batch.notes.len());
                // One that the database will never take must not hold up the others.
                if matches!(error, storage::Error::Refused { .. }) {
                    write_one_by_one(&pens, &mut batch.notes).await;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn write(pens: &Pens, entries: &[Entry]) -> Result<(), storage::Error> {
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

fn tell(error: &storage::Error, waiting: usize) {
    metrics::counter!("audit_failures_total").increment(1);
    tracing::error!(
        error.kind = error.kind(),
        waiting,
        "what was read cannot be recorded; nothing is revealed until it can"
    );
}
