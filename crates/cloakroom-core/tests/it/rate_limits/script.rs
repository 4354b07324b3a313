//! The Lua script that admits requests, run in a real Redis at times set by the test.

use std::collections::HashMap;
use std::time::Duration;

use cloakroom::rate_limits::{Action, Table};
use cloakroom_testkit::{SeededRng, TestRedis};
use redis::aio::MultiplexedConnection;

const SCRIPT: &str = include_str!("../../../../cloakroom-core/src/rate_limits/admit.lua");
/// Windows are long, so that no key expires during a test.
const SECOND: u64 = 1_000_000;

/// A counter as the script receives it.
#[derive(Clone, Debug)]
struct Counter {
    name: String,
    limit: u64,
    window: u64,
    block: u64,
}

/// Requests to admit at once, and up to `reserve` admissions to reserve for the next `reserve_for` microseconds.
#[derive(Clone, Copy)]
struct Batch {
    requests: u64,
    reserve: u64,
    reserve_for: u64,
}

/// Runs the script with a controlled clock.
struct Harness {
    connection: MultiplexedConnection,
    script: String,
    _redis: TestRedis,
}

impl Harness {
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

    /// The state of each counter at a time in microseconds: whether it rejects, what remains, and the wait.
    async fn admit(&mut self, counters: &[Counter], now: u64) -> Vec<[u64; 3]> {
        self.admit_many(1, counters, now).await.remove(0)
    }

    /// The same for several requests in one call.
    async fn admit_many(
        &mut self,
        requests: u64,
        counters: &[Counter],
        now: u64,
    ) -> Vec<Vec<[u64; 3]>> {
        let batch = Batch {
            requests,
            reserve: 0,
            reserve_for: 0,
        };
        self.admit_batch(batch, counters, now).await
    }

    /// The same for the requests of a batch, followed by the admissions that were reserved.
    async fn admit_batch(
        &mut self,
        batch: Batch,
        counters: &[Counter],
        now: u64,
    ) -> Vec<Vec<[u64; 3]>> {
        let mut call = redis::cmd("EVAL");
        call.arg(&self.script).arg(2 * counters.len());
        for counter in counters {
            call.arg(&counter.name)
                .arg(format!("{}:blocked", counter.name));
        }
        call.arg(batch.requests)
            .arg(batch.reserve)
            .arg(batch.reserve_for);
        for counter in counters {
            call.arg(counter.limit)
                .arg(counter.window)
                .arg(counter.block / 1_000);
        }
        call.arg(now / SECOND).arg(now % SECOND);
        let reply: Vec<u64> = call.query_async(&mut self.connection).await.unwrap();
        let (admitted, states) = (reply[0], &reply[1..]);
        let (states, rest) = states.as_chunks::<4>();
        assert!(rest.is_empty() && states.len() == counters.len());
        let outcomes = |number: u64| {
            let outcome =
                |[remaining, wait, rejects, rejected_wait]: &[u64; 4]| match number < admitted {
                    true => [0, remaining - number - 1, *wait],
                    false if *rejects == 1 => [1, 0, *rejected_wait],
                    false => [0, remaining - admitted, *wait],
                };
            states.iter().map(outcome).collect()
        };
        (0..batch.requests.max(admitted)).map(outcomes).collect()
    }
}

#[tokio::test]
async fn every_shipped_limit_holds_at_its_edge() {
    let mut harness = Harness::start().await;
    let start = 1_800_000_000 * SECOND;
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
            let [outcome] = harness.admit(&counter, start).await[..] else {
                panic!()
            };
            assert_eq!(outcome, [0, left, micros(row.window)], "{}", row.name);
        }
        let first = harness.admit(&counter, start + 1).await[0];
        let open = (start + micros(row.window)).max(if block > 0 { start + 1 + block } else { 0 });
        let before = harness.admit(&counter, open - 1).await[0];
        let after = harness.admit(&counter, open).await[0];

        assert_eq!(first, [1, 0, open - start - 1], "{}", row.name);
        assert_eq!(before, [1, 0, 1], "{}", row.name);
        assert_eq!(after[0], 0, "{}", row.name);
    }
}

/// The simplest possible counters: keep every admission and count them each time.
#[derive(Default)]
struct Model {
    admitted: HashMap<String, Vec<u64>>,
    blocked_until: HashMap<String, u64>,
}

impl Model {
    fn check(&mut self, counter: &Counter, now: u64) -> [u64; 3] {
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
        let available_at = inside[inside.len() - usize::try_from(*limit).unwrap()] + window;
        if *block == 0 {
            return [1, 0, available_at - now];
        }
        let until = available_at.max(now + block);
        self.blocked_until.insert(name.clone(), until);
        [1, 0, until - now]
    }

    fn admit(&mut self, counters: &[Counter], now: u64) -> Vec<[u64; 3]> {
        let mut outcomes: Vec<_> = counters.iter().map(|one| self.check(one, now)).collect();
        if outcomes.iter().all(|outcome| outcome[0] == 0) {
            for (counter, outcome) in counters.iter().zip(&mut outcomes) {
                self.admitted.get_mut(&counter.name).unwrap().push(now);
                outcome[1] -= 1;
            }
        }
        outcomes
    }
}

#[tokio::test]
async fn the_script_matches_a_simple_model() {
    let (mut harness, mut chance) = (Harness::start().await, SeededRng::from_environment());
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
                // Requests of one call get the outcomes that they would get one after the other.
                let requests = 1 + chance.below(4) as u64;
                let one_by_one = (0..requests).map(|_| model.admit(&chosen, now));
                let expected: Vec<_> = one_by_one.collect();
                let found = harness.admit_many(requests, &chosen, now).await;
                assert_eq!(found, expected, "round {round}, step {step}: {chosen:?}");
            }
        }
    }
}

#[tokio::test]
async fn reserved_admissions_count_until_one_window_after_their_reservation() {
    let mut harness = Harness::start().await;
    let counter = |name: &str, limit| Counter {
        name: name.into(),
        limit,
        window: 100 * SECOND,
        block: 0,
    };
    let counters = [counter("wide", 10), counter("narrow", 8)];
    let now = 1_800_000_000 * SECOND;
    let batch = Batch {
        requests: 2,
        reserve: 3,
        reserve_for: 5 * SECOND,
    };

    let left = |outcomes: &[Vec<[u64; 3]>]| -> Vec<[u64; 2]> {
        outcomes
            .iter()
            .map(|counters| [counters[0][1], counters[1][1]])
            .collect()
    };
    let first = harness.admit_batch(batch, &counters, now).await;
    assert_eq!(left(&first), [[9, 7], [8, 6], [7, 5], [6, 4], [5, 3]]);

    // Three remain: one request takes one, and only the other two of the seven are reserved.
    let larger = Batch {
        requests: 1,
        reserve: 7,
        reserve_for: 5 * SECOND,
    };
    let second = harness.admit_batch(larger, &counters, now + 1).await;
    assert_eq!(left(&second), [[4, 2], [3, 1], [2, 0]]);

    // All of them count until one window after their reservation ends.
    let narrow = &counters[1..];
    let last = now + 105 * SECOND;
    assert_eq!(
        harness.admit(narrow, now + 2).await,
        [[1, 0, 105 * SECOND - 2]]
    );
    assert_eq!(harness.admit(narrow, last - 1).await, [[1, 0, 1]]);
    assert_eq!(harness.admit(narrow, last).await[0][..2], [0, 4]);
    // A rejected request reserves nothing.
    let none = [counter("none", 0)];
    let rejected = harness.admit_batch(batch, &none, now).await;
    assert_eq!(rejected.len(), 2);
}

#[tokio::test]
async fn long_logs_are_trimmed_at_once_and_keys_expire() {
    let mut harness = Harness::start().await;
    let counter = [Counter {
        name: "long".into(),
        limit: 1_050,
        window: 10 * SECOND,
        block: 0,
    }];
    let start = 1_800_000_000 * SECOND;
    for at in 0..1_050 {
        harness.admit(&counter, start + at).await;
    }

    let [outcome] = harness.admit(&counter, start + 10 * SECOND + 1_039).await[..] else {
        panic!()
    };

    // Ten are still inside the window, plus this one.
    assert_eq!(outcome[..2], [0, 1_050 - 11]);
    let ttl_ms: i64 = redis::cmd("PTTL")
        .arg("long")
        .query_async(&mut harness.connection)
        .await
        .unwrap();
    assert!((10_000..=20_000).contains(&ttl_ms), "{ttl_ms}");
}

/// Clocks are corrected regularly, and a replica that is promoted has a different clock.
#[tokio::test]
async fn a_clock_that_steps_back_admits_no_request_twice() {
    let mut harness = Harness::start().await;
    let counter = [Counter {
        name: "stepping".into(),
        limit: 5,
        window: 10 * SECOND,
        block: 0,
    }];
    let start = 1_800_000_000 * SECOND;
    harness.admit_many(3, &counter, start).await;

    let back = harness.admit_many(4, &counter, start - SECOND / 500).await;
    let later = harness.admit(&counter, start + 10 * SECOND - 1).await[0];
    let over = harness.admit(&counter, start + 10 * SECOND).await[0];

    let rejected: Vec<u64> = back.iter().map(|outcome| outcome[0][0]).collect();
    assert_eq!(rejected, [0, 0, 1, 1]);
    assert_eq!((later[0], over[0]), (1, 0));
}

/// The user of the documented cluster lacked commands of the velocity limit, so that every node counted on its own.
#[test]
fn the_documented_user_of_redis_may_call_what_the_scripts_call() {
    let user = include_str!("../../../../../deploy/ha/redis.conf");
    let user = user
        .lines()
        .find(|line| line.starts_with("user cloakroom "));
    let granted: Vec<&str> = user.unwrap().split(" +").skip(1).collect();
    let velocity = include_str!("../../../../cloakroom-core/src/velocity/admit.lua");
    let mut called = 0;
    for script in [SCRIPT, velocity] {
        for call in script.split("redis.call('").skip(1) {
            let command = call.split('\'').next().unwrap().to_lowercase();
            assert!(granted.contains(&&*command), "{command}");
            called += 1;
        }
    }
    assert!(15 < called, "{called}");
}
