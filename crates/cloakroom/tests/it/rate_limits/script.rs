//! The script that admits requests, in a real Redis and at times of the test's choosing.

use std::collections::HashMap;
use std::time::Duration;

use cloakroom::rate_limits::{Action, Table};
use redis::aio::MultiplexedConnection;

use crate::support::{Chance, TestRedis};

const SCRIPT: &str = include_str!("../../../src/rate_limits/admit.lua");
/// Long windows, so that nothing ends by itself while a test runs.
const SECOND: u64 = 1_000_000;

/// A counter as the script is told of it.
#[derive(Clone, Debug)]
struct Counter {
    name: String,
    limit: u64,
    window: u64,
    block: u64,
}

struct Bench {
    connection: MultiplexedConnection,
    script: String,
    _redis: TestRedis,
}

impl Bench {
    async fn start() -> Self {
        let redis = TestRedis::start(&[]).await;
        let client = redis::Client::open(redis.url()).unwrap();
        let script = SCRIPT.replace("redis.call('TIME')", "{ ARGV[#ARGV - 1], ARGV[#ARGV] }");
        assert_ne!(script, SCRIPT);
        Self {
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            script,
            _redis: redis,
        }
    }

    /// What each counter says at a time in microseconds: whether it refuses, what is left, and the wait.
    async fn ask(&mut self, counters: &[Counter], now: u64) -> Vec<[u64; 3]> {
        self.ask_for(1, counters, now).await.remove(0)
    }

    /// The same for several requests that are asked about at once.
    async fn ask_for(
        &mut self,
        requests: u64,
        counters: &[Counter],
        now: u64,
    ) -> Vec<Vec<[u64; 3]>> {
        self.ask_and_set_aside([requests, 0, 0], counters, now)
            .await
    }

    /// For several requests, and then for those to come for which an admission was set aside: so many at most, which
    /// come within so many microseconds.
    async fn ask_and_set_aside(
        &mut self,
        [requests, aside, ahead]: [u64; 3],
        counters: &[Counter],
        now: u64,
    ) -> Vec<Vec<[u64; 3]>> {
        let mut call = redis::cmd("EVAL");
        call.arg(&self.script).arg(2 * counters.len());
        for counter in counters {
            call.arg(&counter.name)
                .arg(format!("{}:blocked", counter.name));
        }
        call.arg(requests).arg(aside).arg(ahead);
        for counter in counters {
            call.arg(counter.limit)
                .arg(counter.window)
                .arg(counter.block / 1_000);
        }
        call.arg(now / SECOND).arg(now % SECOND);
        let answer: Vec<u64> = call.query_async(&mut self.connection).await.unwrap();
        let (admitted, states) = (answer[0], &answer[1..]);
        let (states, rest) = states.as_chunks::<4>();
        assert!(rest.is_empty() && states.len() == counters.len());
        let heard = |number: u64| {
            let say = |[room, wait, refused, refused_wait]: &[u64; 4]| match number < admitted {
                true => [0, room - number - 1, *wait],
                false if *refused == 1 => [1, 0, *refused_wait],
                false => [0, room - admitted, *wait],
            };
            states.iter().map(say).collect()
        };
        (0..requests.max(admitted)).map(heard).collect()
    }
}

#[tokio::test]
async fn every_shipped_limit_holds_at_its_edge() {
    let mut bench = Bench::start().await;
    let begun = 1_800_000_000 * SECOND;
    for row in Table::shipped().unwrap().rows {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap();
        let block = match row.action {
            Action::Throttle => 0,
            Action::Block(time) => micros(time),
        };
        let counter = [Counter {
            name: row.name.clone(),
            limit: row.requests,
            window: micros(row.window),
            block,
        }];

        for left in (0..row.requests).rev() {
            let [answer] = bench.ask(&counter, begun).await[..] else {
                panic!()
            };
            assert_eq!(answer, [0, left, micros(row.window)], "{}", row.name);
        }
        let first = bench.ask(&counter, begun + 1).await[0];
        let open = (begun + micros(row.window)).max(if block > 0 { begun + 1 + block } else { 0 });
        let before = bench.ask(&counter, open - 1).await[0];
        let after = bench.ask(&counter, open).await[0];

        assert_eq!(first, [1, 0, open - begun - 1], "{}", row.name);
        assert_eq!(before, [1, 0, 1], "{}", row.name);
        assert_eq!(after[0], 0, "{}", row.name);
    }
}

/// Counters as simple as can be: every admission is remembered for good, and counted each time.
#[derive(Default)]
struct Model {
    admitted: HashMap<String, Vec<u64>>,
    blocked_until: HashMap<String, u64>,
}

impl Model {
    fn look(&mut self, counter: &Counter, now: u64) -> [u64; 3] {
        let Counter {
            name,
            limit,
            window,
            block,
        } = counter;
        if let Some(until) = self.blocked_until.get(name).filter(|until| now < **until) {
            return [1, 0, until - now];
        }
        let admitted = self.admitted.entry(name.clone()).or_default();
        let inside: Vec<u64> = admitted
            .iter()
            .copied()
            .filter(|at| now < at + window)
            .collect();
        let count = inside.len() as u64;
        if count < *limit {
            let wait = inside.first().map_or(*window, |at| at + window - now);
            return [0, limit - count, wait];
        }
        let room = inside[inside.len() - usize::try_from(*limit).unwrap()] + window;
        if *block == 0 {
            return [1, 0, room - now];
        }
        let until = room.max(now + block);
        self.blocked_until.insert(name.clone(), until);
        [1, 0, until - now]
    }

    fn ask(&mut self, counters: &[Counter], now: u64) -> Vec<[u64; 3]> {
        let mut answers: Vec<_> = counters.iter().map(|one| self.look(one, now)).collect();
        if answers.iter().all(|answer| answer[0] == 0) {
            for (counter, answer) in counters.iter().zip(&mut answers) {
                self.admitted.get_mut(&counter.name).unwrap().push(now);
                answer[1] -= 1;
            }
        }
        answers
    }
}

#[tokio::test]
async fn the_script_does_what_a_simple_model_does() {
    let (mut bench, mut chance) = (Bench::start().await, Chance::new());
    for round in 0..60 {
        let count = 1 + chance.below(4);
        let counters: Vec<Counter> = (0..count)
            .map(|at| Counter {
                name: format!("{round}-{at}"),
                limit: 1 + chance.below(8) as u64,
                window: (1 + chance.below(40) as u64) * 100 * SECOND,
                block: [0, 0, 1 + chance.below(60) as u64][chance.below(3)] * 100 * SECOND,
            })
            .collect();
        let (mut model, mut now) = (Model::default(), 1_800_000_000 * SECOND);
        for step in 0..80 {
            now += chance.below(600) as u64 * SECOND / (1 + chance.below(50) as u64);
            let chosen: Vec<Counter> = counters
                .iter()
                .filter(|_| chance.below(3) > 0)
                .cloned()
                .collect();
            if !chosen.is_empty() {
                // Those that are asked about at once hear what they would hear one after the other.
                let requests = 1 + chance.below(4) as u64;
                let one_by_one = (0..requests).map(|_| model.ask(&chosen, now));
                let expected: Vec<_> = one_by_one.collect();
                let found = bench.ask_for(requests, &chosen, now).await;
                assert_eq!(found, expected, "round {round}, step {step}: {chosen:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_set_aside_counts_from_now_until_a_window_after_its_time() {
    let mut bench = Bench::start().await;
    let counter = |name: &str, limit| Counter {
        name: name.into(),
        limit,
        window: 100 * SECOND,
        block: 0,
    };
    let counters = [counter("wide", 10), counter("narrow", 8)];
    let now = 1_800_000_000 * SECOND;
    let aside = [2, 3, 5 * SECOND];

    let left = |answers: &[Vec<[u64; 3]>]| -> Vec<[u64; 2]> {
        answers
            .iter()
            .map(|said| [said[0][1], said[1][1]])
            .collect()
    };
    let first = bench.ask_and_set_aside(aside, &counters, now).await;
    assert_eq!(left(&first), [[9, 7], [8, 6], [7, 5], [6, 4], [5, 3]]);

    // Three are left: one asks, and not all that is wished for is set aside.
    let second = bench
        .ask_and_set_aside([1, 7, 5 * SECOND], &counters, now + 1)
        .await;
    assert_eq!(left(&second), [[4, 2], [3, 1], [2, 0]]);

    // All of them count until a window after their time.
    let narrow = &counters[1..];
    let last = now + 105 * SECOND;
    assert_eq!(bench.ask(narrow, now + 2).await, [[1, 0, 105 * SECOND - 2]]);
    assert_eq!(bench.ask(narrow, last - 1).await, [[1, 0, 1]]);
    assert_eq!(bench.ask(narrow, last).await[0][..2], [0, 4]);
    // Nothing is set aside by a request that is refused.
    let none = [counter("none", 0)];
    let refused = bench.ask_and_set_aside(aside, &none, now).await;
    assert_eq!(refused.len(), 2);
}

#[tokio::test]
async fn a_long_log_is_forgotten_at_once_and_what_is_kept_has_an_end() {
    let mut bench = Bench::start().await;
    let counter = [Counter {
        name: "long".into(),
        limit: 1_050,
        window: 10 * SECOND,
        block: 0,
    }];
    let begun = 1_800_000_000 * SECOND;
    for at in 0..1_050 {
        bench.ask(&counter, begun + at).await;
    }

    let [answer] = bench.ask(&counter, begun + 10 * SECOND + 1_039).await[..] else {
        panic!()
    };

    // Ten are still inside, and this one.
    assert_eq!(answer[..2], [0, 1_050 - 11]);
    let left_ms: i64 = redis::cmd("PTTL")
        .arg("long")
        .query_async(&mut bench.connection)
        .await
        .unwrap();
    assert!((10_000..=20_000).contains(&left_ms), "{left_ms}");
}

/// Clocks are corrected all the time, and the replica that takes over has another one.
#[tokio::test]
async fn a_clock_that_steps_back_a_little_admits_nobody_twice() {
    let mut bench = Bench::start().await;
    let counter = [Counter {
        name: "stepping".into(),
        limit: 5,
        window: 10 * SECOND,
        block: 0,
    }];
    let begun = 1_800_000_000 * SECOND;
    bench.ask_for(3, &counter, begun).await;

    let back = bench.ask_for(4, &counter, begun - SECOND / 500).await;
    let later = bench.ask(&counter, begun + 10 * SECOND - 1).await[0];
    let over = bench.ask(&counter, begun + 10 * SECOND).await[0];

    let refused: Vec<u64> = back.iter().map(|heard| heard[0][0]).collect();
    assert_eq!(refused, [0, 0, 1, 1]);
    assert_eq!((later[0], over[0]), (1, 0));
}
