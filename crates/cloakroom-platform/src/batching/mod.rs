//! Batches concurrent requests into one statement and one commit.
//!
//! A statement costs PostgreSQL and the node about as much for one row as for twenty, and so does a commit. An item
//! that arrives while batches are in flight joins the next one. With nothing in flight it runs at once and alone, so
//! batching adds no latency on an idle node. There is no timer.
//!
//! A batch of one runs in the caller's future and is canceled with it. A larger batch runs in its own task: an
//! item whose caller is gone before the batch starts is skipped, and a caller that leaves later does not cancel the
//! batch for the others. A slow batch gives its slot to the next one and is canceled once all of its callers are gone.

mod limits;

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use metrics::Histogram;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::telemetry::catalog;

pub use self::limits::BatchLimits;

/// A batch that takes longer gives its slot to the next one. Most take a tenth of this.
const SLOW: Duration = Duration::from_millis(50);

/// Work that can be done for many items at once.
pub trait BatchHandler: Send + Sync + 'static {
    type Item: Send + 'static;
    type Output: Send + 'static;

    /// Label of this batcher in metrics.
    const NAME: &'static str;

    /// Whether a batch that was started completes even if all of its callers are gone. Then every batch is a task.
    const COMPLETES: bool = false;

    /// Processes `items` and returns one output per item, in the same order.
    fn process(&self, items: Vec<Self::Item>) -> impl Future<Output = Vec<Self::Output>> + Send;

    /// Size of an item, counted against `BatchLimits::max_bytes`.
    fn size_bytes(_item: &Self::Item) -> usize {
        0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// The queue was full or the item waited longer than `queue_timeout`. Nothing was done.
    QueueFull,
    /// The batch panicked. Whether the item was processed is unknown.
    OutcomeUnknown,
}

/// A queue of items and the batches that process it.
pub struct Batcher<H: BatchHandler>(Arc<Inner<H>>);

struct Inner<H: BatchHandler> {
    handler: H,
    limits: BatchLimits,
    state: Mutex<State<H>>,
    batch_items: Histogram,
}

struct State<H: BatchHandler> {
    queue: VecDeque<Pending<H>>,
    /// Slots in use.
    in_flight: usize,
    /// Batches that gave up their slot and still run.
    slow: usize,
}

/// An item that waits for a batch.
struct Pending<H: BatchHandler> {
    item: H::Item,
    queued_at: Instant,
    output: oneshot::Sender<Result<H::Output, BatchError>>,
}

impl<H: BatchHandler> Batcher<H> {
    pub fn new(handler: H, limits: BatchLimits) -> Self {
        Self(Arc::new(Inner {
            handler,
            limits,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                in_flight: 0,
                slow: 0,
            }),
            batch_items: catalog::BATCH_ITEMS.with([H::NAME]),
        }))
    }

    /// Processes an item, alone or in a batch with others.
    pub async fn process(&self, item: H::Item) -> Result<H::Output, BatchError> {
        match Inner::submit(&self.0, item)? {
            Submitted::Alone(item) => Box::pin(run_alone(&self.0, item)).await,
            Submitted::Queued(output) => output.await.unwrap_or(Err(BatchError::OutcomeUnknown)),
        }
    }
}

enum Submitted<H: BatchHandler> {
    /// A slot was free.
    Alone(H::Item),
    /// In the queue, which is read whenever a slot becomes free.
    Queued(oneshot::Receiver<Result<H::Output, BatchError>>),
}

/// The slot of a batch in flight, released however the batch ends.
struct Slot<'a, H: BatchHandler> {
    inner: &'a Arc<Inner<H>>,
    is_slow: bool,
}

impl<H: BatchHandler> Slot<'_, H> {
    /// Gives the slot of a slow batch to the next one, unless `max_slow` batches have done so.
    fn give_up(&mut self) {
        let inner = self.inner;
        let mut state = inner.lock();
        if self.is_slow || state.slow >= inner.limits.max_slow {
            return;
        }
        state.slow += 1;
        self.is_slow = true;
        inner.release_slot(state);
    }
}

impl<H: BatchHandler> Drop for Slot<'_, H> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        match self.is_slow {
            true => state.slow -= 1,
            false => self.inner.release_slot(state),
        }
    }
}

/// Runs a batch to its end. Returns `None` for a slow batch that is abandoned by all of its callers.
async fn run<T>(
    batch: impl Future<Output = T>,
    slot: &mut Slot<'_, impl BatchHandler>,
    is_abandoned: impl Fn() -> bool,
) -> Option<T> {
    let mut batch = pin!(batch);
    loop {
        match timeout(SLOW, &mut batch).await {
            Ok(output) => return Some(output),
            Err(_) if is_abandoned() => return None,
            Err(_) => slot.give_up(),
        }
    }
}

/// Runs a batch of one without a task and a queue, which would cost an idle node more than the batch does.
async fn run_alone<H: BatchHandler>(
    inner: &Arc<Inner<H>>,
    item: H::Item,
) -> Result<H::Output, BatchError> {
    let mut slot = Slot {
        inner,
        is_slow: false,
    };
    inner.batch_items.record(1.0);
    // A caller that leaves drops this future, so it is never abandoned here.
    let outputs = run(inner.handler.process(vec![item]), &mut slot, || false).await;
    let output = outputs.and_then(|mut outputs| outputs.pop());
    output.ok_or(BatchError::OutcomeUnknown)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the batch outlives the request that starts it, and ends with its queue"
)]
fn spawn_batches<H: BatchHandler>(inner: Arc<Inner<H>>) {
    tokio::spawn(async move {
        let mut slot = Slot {
            inner: &inner,
            is_slow: false,
        };
        while !slot.is_slow
            && let Some(batch) = inner.next_batch()
        {
            inner.run_batch(batch, &mut slot).await;
        }
    });
}

impl<H: BatchHandler> Inner<H> {
    /// Takes a free slot, or else a place in the queue. Nothing is queued while a slot is free: a slot goes from batch
    /// to batch until the queue is empty.
    fn submit(self: &Arc<Self>, item: H::Item) -> Result<Submitted<H>, BatchError> {
        let mut state = self.lock();
        let has_slot = state.in_flight < self.limits.max_in_flight;
        if has_slot {
            state.in_flight += 1;
            if !H::COMPLETES {
                return Ok(Submitted::Alone(item));
            }
        } else if state.queue.len() >= self.limits.max_queued {
            return Err(BatchError::QueueFull);
        }
        let (sender, receiver) = oneshot::channel();
        state.queue.push_back(Pending {
            item,
            queued_at: Instant::now(),
            output: sender,
        });
        drop(state);
        if has_slot {
            spawn_batches(self.clone());
        }
        Ok(Submitted::Queued(receiver))
    }

    fn next_batch(&self) -> Option<Vec<Pending<H>>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut timed_out = Vec::new();
        let mut state = self.lock();
        while batch.len() < self.limits.max_items
            && let Some(pending) = state.queue.pop_front()
        {
            if pending.output.is_closed() {
                continue;
            }
            if pending.queued_at.elapsed() > self.limits.queue_timeout {
                timed_out.push(pending);
                continue;
            }
            bytes += H::size_bytes(&pending.item);
            if bytes > self.limits.max_bytes && !batch.is_empty() {
                state.queue.push_front(pending);
                break;
            }
            batch.push(pending);
        }
        drop(state);
        for pending in timed_out {
            let _ = pending.output.send(Err(BatchError::QueueFull));
        }
        (!batch.is_empty()).then_some(batch)
    }

    fn release_slot(self: &Arc<Self>, mut state: MutexGuard<'_, State<H>>) {
        if state.queue.is_empty() {
            state.in_flight -= 1;
            return;
        }
        drop(state);
        spawn_batches(self.clone());
    }

    async fn run_batch(&self, batch: Vec<Pending<H>>, slot: &mut Slot<'_, H>) {
        let (items, senders): (Vec<H::Item>, Vec<_>) = batch
            .into_iter()
            .map(|pending| (pending.item, pending.output))
            .unzip();
        self.batch_items.record(items.len() as f64);
        // A panic drops the senders of this batch, which its callers see as `OutcomeUnknown`.
        let outputs = AssertUnwindSafe(self.handler.process(items)).catch_unwind();
        let is_abandoned = || !H::COMPLETES && senders.iter().all(oneshot::Sender::is_closed);
        if let Some(Ok(outputs)) = run(outputs, slot, is_abandoned).await {
            for (sender, output) in senders.into_iter().zip(outputs) {
                // The caller may be gone.
                let _ = sender.send(Ok(output));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
