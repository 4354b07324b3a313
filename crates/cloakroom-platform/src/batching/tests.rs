//! Tests of queueing, limits, cancellation and slow batches.

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::*;

type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

/// Doubles numbers once a permit is there, and remembers which were in one batch.
struct Doubling {
    batches: Batches,
    permits: Arc<Semaphore>,
}

impl BatchHandler for Doubling {
    type Item = u32;
    type Output = u32;

    const NAME: &'static str = "doubling";

    fn size_bytes(item: &u32) -> usize {
        *item as usize
    }

    async fn process(&self, items: Vec<u32>) -> Vec<u32> {
        self.permits.acquire().await.unwrap().forget();
        self.batches.lock().unwrap().push(items.clone());
        assert!(!items.contains(&13), "thirteen panics");
        items.into_iter().map(|item| item * 2).collect()
    }
}

const LIMITS: BatchLimits = BatchLimits {
    max_in_flight: 1,
    max_slow: 3,
    max_items: 4,
    max_bytes: 1_000,
    max_queued: 10,
    queue_timeout: Duration::from_secs(60),
};

struct Fixture {
    batcher: Arc<Batcher<Doubling>>,
    batches: Batches,
    permits: Arc<Semaphore>,
    callers: JoinSet<(u32, Result<u32, BatchError>)>,
}

impl Fixture {
    fn new(limits: BatchLimits) -> Self {
        let (batches, permits) = (Batches::default(), Arc::new(Semaphore::new(0)));
        let handler = Doubling {
            batches: batches.clone(),
            permits: permits.clone(),
        };
        Self {
            batcher: Arc::new(Batcher::new(handler, limits)),
            batches,
            permits,
            callers: JoinSet::new(),
        }
    }

    /// Submits items one after the other, without waiting for their outputs.
    async fn submit(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let batcher = self.batcher.clone();
            self.callers
                .spawn(async move { (number, batcher.process(number).await) });
            tokio::task::yield_now().await;
        }
        yield_often().await;
    }

    async fn outputs(&mut self) -> Vec<(u32, Option<u32>)> {
        self.permits.add_permits(100);
        let callers = std::mem::take(&mut self.callers);
        let mut outputs: Vec<_> = callers.join_all().await;
        outputs.sort_by_key(|(number, _)| *number);
        outputs
            .into_iter()
            .map(|(number, output)| (number, output.ok()))
            .collect()
    }

    fn batches(&self) -> Vec<Vec<u32>> {
        self.batches.lock().unwrap().clone()
    }
}

async fn yield_often() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn items_that_arrive_during_a_batch_form_the_next_one() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit(1..=7).await;

    let doubled = |number| (number, Some(2 * number));
    assert_eq!(
        fixture.outputs().await,
        (1..=7).map(doubled).collect::<Vec<_>>()
    );
    // The first runs at once and alone, and no batch exceeds `max_items`.
    assert_eq!(fixture.batches(), [vec![1], vec![2, 3, 4, 5], vec![6, 7]]);
    fixture.submit([8]).await;
    assert_eq!(fixture.outputs().await, [(8, Some(16))]);
}

#[tokio::test]
async fn at_most_max_in_flight_batches_run_at_once() {
    let mut fixture = Fixture::new(BatchLimits {
        max_in_flight: 2,
        ..LIMITS
    });
    fixture.submit(1..=4).await;

    fixture.outputs().await;
    // Either of the first two may take the first permit.
    let mut batches = fixture.batches();
    batches.sort();
    assert_eq!(batches, [vec![1], vec![2], vec![3, 4]]);
}

#[tokio::test]
async fn an_item_canceled_in_the_queue_is_skipped() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit([1]).await;
    let batcher = fixture.batcher.clone();
    let mut canceled = JoinSet::new();
    canceled.spawn(async move { batcher.process(2).await });
    yield_often().await;
    canceled.shutdown().await;
    fixture.submit([3]).await;

    assert_eq!(fixture.outputs().await, [(1, Some(2)), (3, Some(6))]);
    assert_eq!(fixture.batches(), [vec![1], vec![3]]);
}

#[tokio::test]
async fn a_canceled_caller_does_not_cancel_the_batch() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit([1, 2, 3]).await;
    fixture.permits.add_permits(1);
    yield_often().await;
    fixture.callers.shutdown().await;
    fixture.submit([4]).await;

    assert_eq!(fixture.outputs().await, [(4, Some(8))]);
    assert_eq!(fixture.batches(), [vec![1], vec![2, 3], vec![4]]);
}

#[tokio::test]
async fn a_slow_batch_ends_when_all_callers_are_gone() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit([1, 2, 3]).await;
    fixture.permits.add_permits(1);
    yield_often().await;
    fixture.callers.shutdown().await;
    tokio::time::sleep(SLOW * 3).await;

    let state = fixture.batcher.0.lock();
    assert_eq!((state.in_flight, state.slow), (0, 0));
    drop(state);
    assert_eq!(fixture.batches(), [vec![1]]);
}

/// The same handler, with batches that complete without callers.
struct Completing(Doubling);

impl BatchHandler for Completing {
    type Item = u32;
    type Output = u32;

    const NAME: &'static str = "completing";
    const COMPLETES: bool = true;

    async fn process(&self, items: Vec<u32>) -> Vec<u32> {
        self.0.process(items).await
    }
}

#[tokio::test]
async fn a_completing_batch_runs_to_its_end_without_callers() {
    let fixture = Fixture::new(LIMITS);
    let handler = Completing(Doubling {
        batches: fixture.batches.clone(),
        permits: fixture.permits.clone(),
    });
    let batcher = Arc::new(Batcher::new(handler, LIMITS));
    let mut canceled = JoinSet::new();
    for number in [1, 2, 3] {
        let batcher = batcher.clone();
        canceled.spawn(async move { batcher.process(number).await });
        yield_often().await;
    }
    canceled.shutdown().await;
    tokio::time::sleep(SLOW * 3).await;
    fixture.permits.add_permits(100);
    yield_often().await;

    // The others were still queued.
    assert_eq!(fixture.batches(), [vec![1]]);
    assert_eq!(batcher.process(4).await, Ok(8));
    yield_often().await;
    let state = batcher.0.lock();
    assert_eq!((state.in_flight, state.slow), (0, 0));
}

#[tokio::test]
async fn a_canceled_batch_of_one_gives_its_slot_to_the_queue() {
    for waiting in [vec![], vec![2, 3]] {
        let mut fixture = Fixture::new(LIMITS);
        let batcher = fixture.batcher.clone();
        let mut canceled = JoinSet::new();
        canceled.spawn(async move { batcher.process(1).await });
        yield_often().await;
        fixture.submit(waiting.clone()).await;
        canceled.shutdown().await;

        let doubled: Vec<_> = waiting.iter().map(|it| (*it, Some(2 * it))).collect();
        assert_eq!(fixture.outputs().await, doubled);
        assert_eq!(fixture.batches().concat(), waiting);
        yield_often().await;
        assert_eq!(fixture.batcher.0.lock().in_flight, 0);
    }
}

#[tokio::test]
async fn the_queue_is_bounded_in_length_and_time() {
    let queue_timeout = Duration::ZERO;
    let mut fixture = Fixture::new(BatchLimits {
        max_queued: 2,
        ..LIMITS
    });
    fixture.submit(1..=4).await;
    let expected = [(1, Some(2)), (2, Some(4)), (3, Some(6)), (4, None)];
    assert_eq!(fixture.outputs().await, expected);

    let mut fixture = Fixture::new(BatchLimits {
        queue_timeout,
        ..LIMITS
    });
    fixture.submit([1, 2]).await;
    // The second item waited too long, and was not processed.
    assert_eq!(fixture.outputs().await, [(1, Some(2)), (2, None)]);
    assert_eq!(fixture.batches(), [vec![1]]);
}

#[tokio::test]
async fn a_panic_fails_its_own_batch_alone() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit([1, 13, 14]).await;
    fixture.permits.add_permits(100);
    yield_often().await;
    fixture.submit([2]).await;

    let expected = [(1, Some(2)), (2, Some(4)), (13, None), (14, None)];
    assert_eq!(fixture.outputs().await, expected);
    assert_eq!(fixture.batches(), [vec![1], vec![13, 14], vec![2]]);
}

#[tokio::test]
async fn a_batch_is_bounded_in_bytes_unless_one_item_exceeds_them() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit([1, 600, 500, 400, 2_000, 3]).await;

    fixture.outputs().await;
    let expected = [vec![1], vec![600], vec![500, 400], vec![2_000], vec![3]];
    assert_eq!(fixture.batches(), expected);
}

#[tokio::test]
async fn a_slow_batch_gives_its_slot_to_the_next() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.submit([1, 2, 3]).await;
    tokio::time::sleep(SLOW * 2).await;
    // The first is still in flight, and so is the second by now, with the third in it.
    fixture.submit([4]).await;
    tokio::time::sleep(SLOW * 2).await;
    assert_eq!(fixture.batcher.0.lock().queue.len(), 0);

    let expected = [(1, Some(2)), (2, Some(4)), (3, Some(6)), (4, Some(8))];
    assert_eq!(fixture.outputs().await, expected);
    assert_eq!(fixture.batches(), [vec![1], vec![2, 3], vec![4]]);
    yield_often().await;
    assert_eq!(fixture.batcher.0.lock().in_flight, 0);
}

#[tokio::test]
async fn only_so_many_slow_batches_let_others_pass() {
    let mut fixture = Fixture::new(BatchLimits {
        max_slow: 1,
        ..LIMITS
    });
    fixture.submit([1]).await;
    tokio::time::sleep(SLOW * 2).await;
    fixture.submit([2]).await;
    tokio::time::sleep(SLOW * 2).await;
    // The first gave its slot to the second, which keeps it.
    fixture.submit([3]).await;
    tokio::time::sleep(SLOW * 2).await;
    assert_eq!(fixture.batcher.0.lock().queue.len(), 1);

    let expected = [(1, Some(2)), (2, Some(4)), (3, Some(6))];
    assert_eq!(fixture.outputs().await, expected);
    yield_often().await;
    let state = fixture.batcher.0.lock();
    assert_eq!((state.in_flight, state.slow), (0, 0));
}
