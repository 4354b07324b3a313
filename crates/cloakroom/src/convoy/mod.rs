//! Requests that travel together: what is asked for while a trip is under way goes along on the next.
//!
//! A statement costs the engine and the node about as much for one row as for twenty, and so does a
//! commit. Nobody waits for company: with nothing under way a request leaves at once, alone. Under load
//! trips fill by themselves, because requests arrive while others travel.
//!
//! Whoever travels alone and leaves takes the trip along. A trip of several is a task of its own: who
//! leaves before it departs is left behind, and nothing is done for them; who leaves later is carried all
//! the same, so nobody's leaving ends what others wait for. A trip that takes long holds up nobody either: its
//! lane is free for the next one, and it ends when all have left.

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

/// How long a trip may keep its lane. Most take a tenth of it.
const SLOW: Duration = Duration::from_millis(50);

/// What is carried, and how.
pub trait Load: Send + Sync + 'static {
    type Item: Send + 'static;
    type Answer: Send + 'static;

    /// What it is called in metrics.
    const NAME: &'static str;

    /// Whether what has departed arrives even if nobody waits for it any more: then nobody travels alone.
    const ARRIVES: bool = false;

    /// Carries everything, and answers each in the order that they came in.
    fn carry(&self, items: Vec<Self::Item>) -> impl Future<Output = Vec<Self::Answer>> + Send;

    /// How much of a trip an item takes up, in bytes.
    fn bytes(_item: &Self::Item) -> usize {
        0
    }
}

/// How much may travel at a time.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Trips that are under way at once, not counting slow ones.
    pub lanes: usize,
    /// Slow trips that have given up their lanes; beyond it, they keep them.
    pub slow: usize,
    /// Items of one trip.
    pub seats: usize,
    /// Bytes of one trip, unless a single item has more.
    pub bytes: usize,
    /// Items that wait for a trip; beyond it, they are refused.
    pub waiting: usize,
    /// How long an item waits for its trip to begin.
    pub patience: Duration,
}

impl Size {
    /// Statements: while the engine works on one trip, the node fills and empties the other. Slow ones may have all
    /// other connections.
    pub fn of_statements(connections: usize, patience: Duration) -> Self {
        const LANES: usize = 2;
        Self {
            lanes: LANES,
            slow: connections.saturating_sub(LANES),
            seats: 128,
            bytes: 2 * 1024 * 1024,
            waiting: 10_000,
            patience,
        }
    }

    /// Questions to Redis, which answers them one after the other: two under way keep it busy.
    pub fn of_questions(seats: usize, patience: Duration) -> Self {
        Self {
            lanes: 2,
            slow: 100,
            seats,
            bytes: usize::MAX,
            waiting: 10_000,
            patience,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranded {
    /// No trip could take it. Nothing was done.
    Behind,
    /// Its trip met a panic: what was done is not known.
    Lost,
}

/// A queue, and the trips that empty it.
pub struct Convoy<L: Load>(Arc<Station<L>>);

struct Station<L: Load> {
    load: L,
    size: Size,
    state: Mutex<State<L>>,
    passengers: Histogram,
}

struct State<L: Load> {
    queue: VecDeque<Passenger<L>>,
    /// Lanes in use.
    under_way: usize,
    /// Trips that are under way without a lane.
    slow: usize,
}

struct Passenger<L: Load> {
    item: L::Item,
    since: Instant,
    answer: oneshot::Sender<Result<L::Answer, Stranded>>,
}

impl<L: Load> Convoy<L> {
    pub fn new(load: L, size: Size) -> Self {
        Self(Arc::new(Station {
            load,
            size,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                under_way: 0,
                slow: 0,
            }),
            passengers: metrics::histogram!("convoy_passengers", "of" => L::NAME),
        }))
    }

    /// Has an item carried, alone or together with others.
    pub async fn join(&self, item: L::Item) -> Result<L::Answer, Stranded> {
        match Station::enter(&self.0, item)? {
            Entered::Alone(item) => Box::pin(travel_alone(&self.0, item)).await,
            Entered::Waiting(arrival) => arrival.await.unwrap_or(Err(Stranded::Lost)),
        }
    }
}

/// How an item begins.
enum Entered<L: Load> {
    /// On a lane that was free.
    Alone(L::Item),
    /// In the queue, which whoever leaves a lane looks at.
    Waiting(oneshot::Receiver<Result<L::Answer, Stranded>>),
}

/// The place of a trip: on a lane, or beside it when it is slow. Given back however the trip ends.
struct Place<'a, L: Load> {
    station: &'a Arc<Station<L>>,
    is_slow: bool,
}

impl<L: Load> Place<'_, L> {
    /// Makes way for the next trip, unless too many have done so.
    fn step_aside(&mut self) {
        let station = self.station;
        let mut state = station.lock();
        if self.is_slow || state.slow >= station.size.slow {
            return;
        }
        state.slow += 1;
        self.is_slow = true;
        station.leave_lane(state);
    }
}

impl<L: Load> Drop for Place<'_, L> {
    fn drop(&mut self) {
        let mut state = self.station.lock();
        match self.is_slow {
            true => state.slow -= 1,
            false => self.station.leave_lane(state),
        }
    }
}

/// Runs a trip to its end. A slow one lets the next one pass, and has no outcome once it is abandoned.
async fn run<T>(
    trip: impl Future<Output = T>,
    place: &mut Place<'_, impl Load>,
    is_abandoned: impl Fn() -> bool,
) -> Option<T> {
    let mut trip = pin!(trip);
    loop {
        match timeout(SLOW, &mut trip).await {
            Ok(outcome) => return Some(outcome),
            Err(_) if is_abandoned() => return None,
            Err(_) => place.step_aside(),
        }
    }
}

/// Without a task and without a queue, which cost an idle vault more than they are worth.
async fn travel_alone<L: Load>(
    station: &Arc<Station<L>>,
    item: L::Item,
) -> Result<L::Answer, Stranded> {
    let mut place = Place {
        station,
        is_slow: false,
    };
    station.passengers.record(1.0);
    // Whoever leaves drops all of this.
    let answers = run(station.load.carry(vec![item]), &mut place, || false).await;
    let answer = answers.into_iter().flatten().next();
    answer.ok_or(Stranded::Lost)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a trip goes on when the request that began it is gone, and ends with its queue"
)]
fn depart<L: Load>(station: Arc<Station<L>>) {
    tokio::spawn(async move {
        let mut place = Place {
            station: &station,
            is_slow: false,
        };
        while !place.is_slow
            && let Some(passengers) = station.board()
        {
            station.travel(passengers, &mut place).await;
        }
    });
}

impl<L: Load> Station<L> {
    /// Takes a lane if there is one, and else a place in the queue. Nobody waits while a lane is free:
    /// it goes from trip to trip until the queue is empty.
    fn enter(self: &Arc<Self>, item: L::Item) -> Result<Entered<L>, Stranded> {
        let mut state = self.lock();
        let has_lane = state.under_way < self.size.lanes;
        if has_lane {
            state.under_way += 1;
            if !L::ARRIVES {
                return Ok(Entered::Alone(item));
            }
        } else if state.queue.len() >= self.size.waiting {
            return Err(Stranded::Behind);
        }
        let (answer, arrival) = oneshot::channel();
        state.queue.push_back(Passenger {
            item,
            since: Instant::now(),
            answer,
        });
        drop(state);
        if has_lane {
            depart(self.clone());
        }
        Ok(Entered::Waiting(arrival))
    }

    /// The next ones to travel.
    fn board(&self) -> Option<Vec<Passenger<L>>> {
        let (mut passengers, mut bytes) = (Vec::new(), 0);
        let mut late = Vec::new();
        let mut state = self.lock();
        while passengers.len() < self.size.seats
            && let Some(passenger) = state.queue.pop_front()
        {
            if passenger.answer.is_closed() {
                continue;
            }
            if passenger.since.elapsed() > self.size.patience {
                late.push(passenger);
                continue;
            }
            bytes += L::bytes(&passenger.item);
            if bytes > self.size.bytes && !passengers.is_empty() {
                state.queue.push_front(passenger);
                break;
            }
            passengers.push(passenger);
        }
        drop(state);
        for passenger in late {
            let _ = passenger.answer.send(Err(Stranded::Behind));
        }
        (!passengers.is_empty()).then_some(passengers)
    }

    /// Gives a lane to whoever waits, or back.
    fn leave_lane(self: &Arc<Self>, mut state: MutexGuard<'_, State<L>>) {
        if state.queue.is_empty() {
            state.under_way -= 1;
            return;
        }
        drop(state);
        depart(self.clone());
    }

    async fn travel(&self, passengers: Vec<Passenger<L>>, place: &mut Place<'_, L>) {
        let (items, answers): (Vec<L::Item>, Vec<_>) = passengers
            .into_iter()
            .map(|passenger| (passenger.item, passenger.answer))
            .unzip();
        self.passengers.record(items.len() as f64);
        // Whoever travelled learns of a panic by the answer that does not come; the others go on.
        let trip = AssertUnwindSafe(self.load.carry(items)).catch_unwind();
        // What nobody waits for any more ends, as it does for one who travels alone.
        let have_left = || !L::ARRIVES && answers.iter().all(oneshot::Sender::is_closed);
        if let Some(Ok(outcomes)) = run(trip, place, have_left).await {
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // Whoever is gone has given up the answer.
                let _ = answer.send(Ok(outcome));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;

    type Trips = Arc<Mutex<Vec<Vec<u32>>>>;

    /// Doubles numbers when it is let, and remembers which travelled together.
    struct Doubling {
        trips: Trips,
        departures: Arc<Semaphore>,
    }

    impl Load for Doubling {
        type Item = u32;
        type Answer = u32;

        const NAME: &'static str = "doubling";

        fn bytes(item: &u32) -> usize {
            *item as usize
        }

        async fn carry(&self, items: Vec<u32>) -> Vec<u32> {
            self.departures.acquire().await.unwrap().forget();
            self.trips.lock().unwrap().push(items.clone());
            assert!(!items.contains(&13), "nobody carries thirteen");
            items.into_iter().map(|item| item * 2).collect()
        }
    }

    const SIZE: Size = Size {
        lanes: 1,
        slow: 3,
        seats: 4,
        bytes: 1_000,
        waiting: 10,
        patience: Duration::from_secs(60),
    };

    struct Scene {
        convoy: Arc<Convoy<Doubling>>,
        trips: Trips,
        departures: Arc<Semaphore>,
        asking: JoinSet<(u32, Result<u32, Stranded>)>,
    }

    impl Scene {
        fn new(size: Size) -> Self {
            let (trips, departures) = (Trips::default(), Arc::new(Semaphore::new(0)));
            let load = Doubling {
                trips: trips.clone(),
                departures: departures.clone(),
            };
            Self {
                convoy: Arc::new(Convoy::new(load, size)),
                trips,
                departures,
                asking: JoinSet::new(),
            }
        }

        /// Asks one after the other, none of them waiting for its answer.
        async fn ask(&mut self, numbers: impl IntoIterator<Item = u32>) {
            for number in numbers {
                let convoy = self.convoy.clone();
                self.asking
                    .spawn(async move { (number, convoy.join(number).await) });
                tokio::task::yield_now().await;
            }
            settle().await;
        }

        async fn answers(&mut self) -> Vec<(u32, Option<u32>)> {
            self.departures.add_permits(100);
            let asking = std::mem::take(&mut self.asking);
            let mut answers: Vec<_> = asking.join_all().await;
            answers.sort_by_key(|(number, _)| *number);
            answers
                .into_iter()
                .map(|(number, answer)| (number, answer.ok()))
                .collect()
        }

        fn trips(&self) -> Vec<Vec<u32>> {
            self.trips.lock().unwrap().clone()
        }
    }

    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_asks_while_others_travel_goes_along_on_the_next_trip() {
        let mut scene = Scene::new(SIZE);
        scene.ask(1..=7).await;

        let doubled = |number| (number, Some(2 * number));
        assert_eq!(
            scene.answers().await,
            (1..=7).map(doubled).collect::<Vec<_>>()
        );
        // The first left at once and alone, and no trip has more than its seats.
        assert_eq!(scene.trips(), [vec![1], vec![2, 3, 4, 5], vec![6, 7]]);
        scene.ask([8]).await;
        assert_eq!(scene.answers().await, [(8, Some(16))]);
    }

    #[tokio::test]
    async fn as_many_trips_are_under_way_as_there_are_lanes() {
        let mut scene = Scene::new(Size { lanes: 2, ..SIZE });
        scene.ask(1..=4).await;

        scene.answers().await;
        // Whoever is let go first travels first.
        let mut trips = scene.trips();
        trips.sort();
        assert_eq!(trips, [vec![1], vec![2], vec![3, 4]]);
    }

    #[tokio::test]
    async fn who_leaves_before_the_trip_is_not_carried_and_holds_up_nobody() {
        let mut scene = Scene::new(SIZE);
        scene.ask([1]).await;
        let convoy = scene.convoy.clone();
        let mut leaving = JoinSet::new();
        leaving.spawn(async move { convoy.join(2).await });
        settle().await;
        leaving.shutdown().await;
        scene.ask([3]).await;

        assert_eq!(scene.answers().await, [(1, Some(2)), (3, Some(6))]);
        assert_eq!(scene.trips(), [vec![1], vec![3]]);
    }

    #[tokio::test]
    async fn who_leaves_on_the_way_does_not_end_the_trip() {
        let mut scene = Scene::new(SIZE);
        scene.ask([1, 2, 3]).await;
        scene.departures.add_permits(1);
        settle().await;
        scene.asking.shutdown().await;
        scene.ask([4]).await;

        assert_eq!(scene.answers().await, [(4, Some(8))]);
        assert_eq!(scene.trips(), [vec![1], vec![2, 3], vec![4]]);
    }

    #[tokio::test]
    async fn a_slow_trip_ends_when_all_have_left_it() {
        let mut scene = Scene::new(SIZE);
        scene.ask([1, 2, 3]).await;
        scene.departures.add_permits(1);
        settle().await;
        scene.asking.shutdown().await;
        tokio::time::sleep(SLOW * 3).await;

        let state = scene.convoy.0.lock();
        assert_eq!((state.under_way, state.slow), (0, 0));
        drop(state);
        assert_eq!(scene.trips(), [vec![1]]);
    }

    /// The same, whoever leaves.
    struct Arriving(Doubling);

    impl Load for Arriving {
        type Item = u32;
        type Answer = u32;

        const NAME: &'static str = "arriving";
        const ARRIVES: bool = true;

        async fn carry(&self, items: Vec<u32>) -> Vec<u32> {
            self.0.carry(items).await
        }
    }

    #[tokio::test]
    async fn what_is_to_arrive_does_so_without_anybody_waiting() {
        let scene = Scene::new(SIZE);
        let load = Arriving(Doubling {
            trips: scene.trips.clone(),
            departures: scene.departures.clone(),
        });
        let convoy = Arc::new(Convoy::new(load, SIZE));
        let mut leaving = JoinSet::new();
        for number in [1, 2, 3] {
            let convoy = convoy.clone();
            leaving.spawn(async move { convoy.join(number).await });
            settle().await;
        }
        leaving.shutdown().await;
        tokio::time::sleep(SLOW * 3).await;
        scene.departures.add_permits(100);
        settle().await;

        // The others had not departed.
        assert_eq!(scene.trips(), [vec![1]]);
        assert_eq!(convoy.join(4).await, Ok(8));
        settle().await;
        let state = convoy.0.lock();
        assert_eq!((state.under_way, state.slow), (0, 0));
    }

    #[tokio::test]
    async fn who_travels_alone_and_leaves_gives_the_lane_to_whoever_waits() {
        for waiting in [vec![], vec![2, 3]] {
            let mut scene = Scene::new(SIZE);
            let convoy = scene.convoy.clone();
            let mut leaving = JoinSet::new();
            leaving.spawn(async move { convoy.join(1).await });
            settle().await;
            scene.ask(waiting.clone()).await;
            leaving.shutdown().await;

            let doubled: Vec<_> = waiting.iter().map(|it| (*it, Some(2 * it))).collect();
            assert_eq!(scene.answers().await, doubled);
            assert_eq!(scene.trips().concat(), waiting);
            settle().await;
            assert_eq!(scene.convoy.0.lock().under_way, 0);
        }
    }

    #[tokio::test]
    async fn a_queue_has_an_end_and_patience_too() {
        let patience = Duration::ZERO;
        let mut scene = Scene::new(Size { waiting: 2, ..SIZE });
        scene.ask(1..=4).await;
        let refused = [(1, Some(2)), (2, Some(4)), (3, Some(6)), (4, None)];
        assert_eq!(scene.answers().await, refused);

        let mut scene = Scene::new(Size { patience, ..SIZE });
        scene.ask([1, 2]).await;
        // Whoever waits at all has waited too long; nothing was done for them.
        assert_eq!(scene.answers().await, [(1, Some(2)), (2, None)]);
        assert_eq!(scene.trips(), [vec![1]]);
    }

    #[tokio::test]
    async fn a_panic_is_an_unknown_outcome_for_those_who_travelled_and_for_nobody_else() {
        let mut scene = Scene::new(SIZE);
        scene.ask([1, 13, 14]).await;
        scene.departures.add_permits(100);
        settle().await;
        scene.ask([2]).await;

        let expected = [(1, Some(2)), (2, Some(4)), (13, None), (14, None)];
        assert_eq!(scene.answers().await, expected);
        assert_eq!(scene.trips(), [vec![1], vec![13, 14], vec![2]]);
    }

    #[tokio::test]
    async fn a_trip_carries_only_so_many_bytes_or_one_that_has_more() {
        let mut scene = Scene::new(SIZE);
        scene.ask([1, 600, 500, 400, 2_000, 3]).await;

        scene.answers().await;
        let expected = [vec![1], vec![600], vec![500, 400], vec![2_000], vec![3]];
        assert_eq!(scene.trips(), expected);
    }

    #[tokio::test]
    async fn a_slow_trip_lets_the_next_one_pass() {
        let mut scene = Scene::new(SIZE);
        scene.ask([1, 2, 3]).await;
        tokio::time::sleep(SLOW * 2).await;
        // The first is still under way, and so is the second by now; the third left with it.
        scene.ask([4]).await;
        tokio::time::sleep(SLOW * 2).await;
        assert_eq!(scene.convoy.0.lock().queue.len(), 0);

        let expected = [(1, Some(2)), (2, Some(4)), (3, Some(6)), (4, Some(8))];
        assert_eq!(scene.answers().await, expected);
        assert_eq!(scene.trips(), [vec![1], vec![2, 3], vec![4]]);
        settle().await;
        assert_eq!(scene.convoy.0.lock().under_way, 0);
    }

    #[tokio::test]
    async fn only_so_many_slow_trips_let_others_pass() {
        let mut scene = Scene::new(Size { slow: 1, ..SIZE });
        scene.ask([1]).await;
        tokio::time::sleep(SLOW * 2).await;
        scene.ask([2]).await;
        tokio::time::sleep(SLOW * 2).await;
        // The first has made way for the second, which makes way for nobody.
        scene.ask([3]).await;
        tokio::time::sleep(SLOW * 2).await;
        assert_eq!(scene.convoy.0.lock().queue.len(), 1);

        let expected = [(1, Some(2)), (2, Some(4)), (3, Some(6))];
        assert_eq!(scene.answers().await, expected);
        settle().await;
        let state = scene.convoy.0.lock();
        assert_eq!((state.under_way, state.slow), (0, 0));
    }
}
