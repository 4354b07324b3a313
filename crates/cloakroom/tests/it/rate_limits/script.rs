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
        let mut call = redis::cmd("EVAL");
        call.arg(&self.script).arg(2 * counters.len());
        for counter in counters {
            call.arg(&counter.name)
                .arg(format!("{}:blocked", counter.name));
        }
        for counter in counters {
            call.arg(counter.limit)
                .arg(counter.window)
                .arg(counter.block / 1_000);
        }
        call.arg(now / SECOND).arg(now % SECOND);
        let answer: Vec<u64> = call.query_async(&mut self.connection).await.unwrap();
        let (answers, rest) = answer.as_chunks::<3>();
        assert!(rest.is_empty());
        answers.to_vec()
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
                let (expected, found) = (model.ask(&chosen, now), bench.ask(&chosen, now).await);
                assert_eq!(found, expected, "round {round}, step {step}: {chosen:?}");
            }
        }
    }
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
    assert!((1..=10_000).contains(&left_ms), "{left_ms}");
}
