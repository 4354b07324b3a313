//! Limits across nodes, as a checker of its own sees them.
//!
//! The checker watches Redis with `MONITOR`: each admission is a time that is pushed to the list of a counter.
//! It makes sure that each admitted answer was counted, and slides a window over the times.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom::access::ApplicationKind::Private;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::site::{Site, limit};
use super::{CHEAP, TOO_MANY};
use crate::support::{Client, TestRedis};

/// A limit so low that nothing is set aside for requests to come, and one of which something is.
const LOW: usize = 40;
const HIGH: usize = 200;
const WINDOW: Duration = Duration::from_secs(1);
const SECONDS: u64 = 5;

/// Times of admissions in microseconds, by the name of their counter.
type Times = BTreeMap<String, Vec<u64>>;

struct Monitor {
    times: Arc<Mutex<Times>>,
    reading: JoinHandle<()>,
}

impl Monitor {
    #[expect(clippy::disallowed_methods, reason = "ends with the monitor")]
    async fn start(redis: &TestRedis) -> Self {
        let url = redis.url();
        let (user, host) = url
            .strip_prefix("redis://")
            .unwrap()
            .split_once('@')
            .unwrap();
        let (_, password) = user.split_once(':').unwrap();
        let mut stream = TcpStream::connect(host.trim_end_matches("/0"))
            .await
            .unwrap();
        let greeting = format!("AUTH {password}\r\nMONITOR\r\n");
        stream.write_all(greeting.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        for _ in 0..2 {
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "+OK");
        }
        let times = Arc::<Mutex<Times>>::default();
        let seen = Arc::clone(&times);
        let reading = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut words = line.split('"').skip(1).step_by(2);
                if words
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case("rpush"))
                    && let Some(name) = words.next()
                {
                    // When, how many there were before, and how many with those that were asked about.
                    let mut seen = seen.lock().unwrap();
                    let times = seen.entry(name.to_owned()).or_default();
                    let entry = words.next().unwrap().split(':');
                    let [at, before, after] = entry
                        .map(|number| number.parse::<u64>().unwrap())
                        .collect::<Vec<u64>>()[..]
                    else {
                        panic!("{line}")
                    };
                    times.extend((before..after).map(|_| at));
                }
            }
        });
        Self { times, reading }
    }

    async fn finish(self) -> Times {
        // What Redis has told is on its way for a moment.
        sleep(Duration::from_millis(300)).await;
        self.reading.abort();
        std::mem::take(&mut self.times.lock().unwrap())
    }
}

/// Sends a request at each of these times to the nodes in turn, and counts those that were admitted.
async fn send_at(nodes: &[Client], times: &[Duration]) -> usize {
    let begun = Instant::now() + Duration::from_millis(100);
    let mut sent = JoinSet::new();
    for (at, node) in times.iter().zip(nodes.iter().cycle()) {
        let (at, node) = (begun + *at, node.clone());
        sent.spawn(async move {
            sleep_until(at).await;
            node.get(CHEAP).await.status
        });
    }
    let statuses = sent.join_all().await;
    assert!(
        statuses
            .iter()
            .all(|status| status.is_success() || *status == TOO_MANY)
    );
    statuses.iter().filter(|status| status.is_success()).count()
}

/// How many a single perfect counter would admit of requests at these times.
fn ideal(times: &[Duration], limit: usize) -> usize {
    let mut admitted: Vec<Duration> = Vec::new();
    for at in times {
        let oldest = admitted
            .len()
            .checked_sub(limit)
            .map(|place| admitted[place]);
        if oldest.is_none_or(|oldest| oldest + WINDOW <= *at) {
            admitted.push(*at);
        }
    }
    admitted.len()
}

/// The most admissions that any window holds.
fn fullest(times: &[u64]) -> usize {
    let window = u64::try_from(WINDOW.as_micros()).unwrap();
    let inside = |from: &u64| {
        times
            .iter()
            .filter(|at| (*from..from + window).contains(*at))
            .count()
    };
    times.iter().map(inside).max().unwrap_or(0)
}

async fn limits_hold_across(count: usize, most: usize) {
    let table = limit(
        "shared",
        &format!(
            "counter = \"key and ip\"; requests = {most}; window = \"1s\"; action = \"throttle\""
        ),
    );
    let site = Site::with_redis(&table).await;
    let mut others = Vec::new();
    for _ in 1..count {
        others.push(site.first.second_node().await);
    }
    let steady: Vec<Duration> = (0..5 * most as u64 * SECONDS)
        .map(|at| Duration::from_millis(at * 1_000 / (5 * most as u64)))
        .collect();
    // Right before and right after each full second, when a fixed window would admit double, and some
    // all the time.
    let bursts = (1..SECONDS)
        .flat_map(|second| [second * 1_000 - 60, second * 1_000 + 60])
        .flat_map(|at| std::iter::repeat_n(Duration::from_millis(at), most));
    let mut edges: Vec<Duration> = steady.iter().step_by(2).copied().chain(bursts).collect();
    edges.sort();
    for (load, times) in [("steady", steady), ("edges", edges)] {
        let client = site.client(Private).await;
        let at = |node: &crate::support::TestVault| client.at(&node.base_url);
        let nodes: Vec<Client> = std::iter::once(&site.first)
            .chain(&others)
            .map(at)
            .collect();
        let monitor = Monitor::start(site.redis()).await;

        let admitted = send_at(&nodes, &times).await;

        let seen: Vec<Vec<u64>> = monitor.finish().await.into_values().collect();
        let [seen] = &seen[..] else {
            panic!("{} counters", seen.len())
        };
        let (fullest, ideal) = (fullest(seen), ideal(&times, most));
        println!(
            "{count} nodes, {load}: {} sent, {admitted} admitted, {ideal} ideally, {fullest} in the fullest window",
            times.len()
        );
        match most {
            LOW => assert_eq!(seen.len(), admitted, "{load}"),
            // Some is set aside, and little of it is in vain.
            _ => assert!(
                (admitted..=admitted * 103 / 100).contains(&seen.len()),
                "{load}: {}",
                seen.len()
            ),
        }
        assert!(fullest <= most, "{load}: {fullest}");
        assert!(
            admitted * 100 >= ideal * 95,
            "{load}: {admitted} of {ideal}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_on_one_node() {
    limits_hold_across(1, LOW).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_across_two_nodes() {
    limits_hold_across(2, LOW).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_across_four_nodes() {
    limits_hold_across(4, LOW).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_which_some_is_set_aside_hold() {
    limits_hold_across(1, HIGH).await;
}
