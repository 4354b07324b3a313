//! Limits across nodes, verified independently.
//!
//! A checker watches Redis with `MONITOR`: each admission is a timestamp pushed to the list of a counter. It verifies
//! that each admitted request was counted, that no window holds more than the limit, and that each rejected request
//! met a full window. A load during which a node lost Redis is repeated: the node counts by itself then, and a machine
//! that stalls for 100 ms is enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cloakroom::access::ApplicationKind::Private;
use cloakroom_testkit::{Client, TestRedis, TestVault};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::deployment::{Deployment, limit};
use super::{CHEAP, TOO_MANY};

/// A limit too low for admissions to be reserved ahead, and one that is high enough.
const LOW: usize = 40;
const HIGH: usize = 200;
const WINDOW: Duration = Duration::from_secs(1);
const SECONDS: u64 = 5;
/// A load is repeated at most this often before it is given up.
const ATTEMPTS_MAX: usize = 6;

/// An admission that is reserved has the time at which the reservation ends, and counts at once.
const RESERVED_FOR_MICROS: u64 = 20_000;

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
        let handshake = format!("AUTH {password}\r\nMONITOR\r\n");
        stream.write_all(handshake.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        for _ in 0..2 {
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "+OK");
        }
        let times = Arc::<Mutex<Times>>::default();
        let recorded = Arc::clone(&times);
        let reading = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut words = line.split('"').skip(1).step_by(2);
                if words
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case("rpush"))
                    && let Some(name) = words.next()
                {
                    // Timestamp, count before, and count after.
                    let mut recorded = recorded.lock().unwrap();
                    let times = recorded.entry(name.to_owned()).or_default();
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
        // Redis may still be sending.
        sleep(Duration::from_millis(300)).await;
        self.reading.abort();
        std::mem::take(&mut self.times.lock().unwrap())
    }
}

/// A request as its client observed it, in microseconds of the clock that Redis uses too.
struct Exchange {
    sent_at: u64,
    received_at: u64,
    admitted: bool,
}

fn now_micros() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// Sends a request at each of these times, to the nodes in turn.
async fn send_at(nodes: &[Client], times: &[Duration]) -> Vec<Exchange> {
    let start = Instant::now() + Duration::from_millis(100);
    let mut requests = JoinSet::new();
    for (at, node) in times.iter().zip(nodes.iter().cycle()) {
        let (at, node) = (start + *at, node.clone());
        requests.spawn(async move {
            sleep_until(at).await;
            let sent_at = now_micros();
            let status = node.get(CHEAP).await.status;
            assert!(status.is_success() || status == TOO_MANY, "{status}");
            Exchange {
                sent_at,
                received_at: now_micros(),
                admitted: status.is_success(),
            }
        });
    }
    requests.join_all().await
}

/// The most admissions that a window holds which ends between `from` and `until`, with those up to `ahead` later.
fn fullest_window(admissions: &[u64], from: u64, until: u64, ahead: u64) -> usize {
    let window = u64::try_from(WINDOW.as_micros()).unwrap();
    // The count of a window rises only at an admission, so these ends suffice.
    std::iter::once(from)
        .chain(admissions.iter().map(|at| at.saturating_sub(ahead)))
        .filter(|end| (from..=until).contains(end))
        .map(|end| {
            let within = |at: &&u64| (end.saturating_sub(window) + 1..=end + ahead).contains(*at);
            admissions.iter().filter(within).count()
        })
        .max()
        .unwrap_or(0)
}

async fn limits_hold_across(count: usize, max_requests: usize) {
    let table = limit(
        "shared",
        &format!(
            "counter = \"key and ip\"; requests = {max_requests}; window = \"1s\"; action = \"throttle\""
        ),
    );
    let deployment = Deployment::with_redis(&table).await;
    let mut others = Vec::new();
    for _ in 1..count {
        others.push(deployment.node.second_node().await);
    }
    let steady: Vec<Duration> = (0..5 * max_requests as u64 * SECONDS)
        .map(|at| Duration::from_millis(at * 1_000 / (5 * max_requests as u64)))
        .collect();
    // Bursts right before and after each full second, when a fixed window would admit twice the limit, on top of a
    // steady load.
    let bursts = (1..SECONDS)
        .flat_map(|second| [second * 1_000 - 60, second * 1_000 + 60])
        .flat_map(|at| std::iter::repeat_n(Duration::from_millis(at), max_requests));
    let mut edges: Vec<Duration> = steady.iter().step_by(2).copied().chain(bursts).collect();
    edges.sort();
    let all_nodes: Vec<&TestVault> = std::iter::once(&deployment.node).chain(&others).collect();
    let outages = || -> u64 {
        let redis = all_nodes
            .iter()
            .filter_map(|node| node.vault.redis.as_ref());
        redis.map(|redis| redis.outages()).sum()
    };
    for (load, times) in [("steady", steady), ("edges", edges)] {
        for attempt in 1..=ATTEMPTS_MAX {
            let before = outages();
            let result = run_load(&deployment, &all_nodes, load, &times).await;
            if outages() == before {
                result.check(load, max_requests);
                break;
            }
            println!("{load}: not checked, a node lost Redis (attempt {attempt})");
        }
    }
}

/// What was sent and what Redis counted during one load.
struct LoadResult {
    exchanges: Vec<Exchange>,
    admissions: Vec<u64>,
}

async fn run_load(
    deployment: &Deployment,
    nodes: &[&TestVault],
    load: &str,
    times: &[Duration],
) -> LoadResult {
    let client = deployment.client(Private).await;
    let clients: Vec<Client> = nodes.iter().map(|node| client.at(&node.base_url)).collect();
    let monitor = Monitor::start(deployment.redis()).await;

    let exchanges = send_at(&clients, times).await;

    let admissions: Vec<Vec<u64>> = monitor.finish().await.into_values().collect();
    let [admissions] = &admissions[..] else {
        panic!("{} counters", admissions.len())
    };
    println!(
        "{} nodes, {load}: {} sent, {} admitted, {} counted, {} in the fullest window",
        nodes.len(),
        times.len(),
        exchanges.iter().filter(|one| one.admitted).count(),
        admissions.len(),
        fullest_window(admissions, 0, u64::MAX, 0),
    );
    LoadResult {
        exchanges,
        admissions: admissions.clone(),
    }
}

impl LoadResult {
    fn check(&self, load: &str, max_requests: usize) {
        let admissions = &self.admissions[..];
        let admitted = self.exchanges.iter().filter(|one| one.admitted).count();
        match max_requests {
            LOW => assert_eq!(admissions.len(), admitted, "{load}"),
            // Reservations that a stalled node does not use expire.
            _ => assert!(admitted <= admissions.len(), "{load}: {}", admissions.len()),
        }
        let fullest = fullest_window(admissions, 0, u64::MAX, 0);
        assert!(fullest <= max_requests, "{load}: {fullest}");
        let ahead = match max_requests {
            LOW => 0,
            _ => RESERVED_FOR_MICROS,
        };
        for rejected in self.exchanges.iter().filter(|one| !one.admitted) {
            let filled = fullest_window(admissions, rejected.sent_at, rejected.received_at, ahead);
            assert!(
                max_requests <= filled,
                "{load}: rejected at {filled} of {max_requests}"
            );
        }
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
async fn limits_with_reserved_admissions_hold() {
    limits_hold_across(1, HIGH).await;
}
