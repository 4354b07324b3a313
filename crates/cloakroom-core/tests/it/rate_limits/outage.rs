//! Limits while Redis is killed, paused or flushed.

use std::time::Duration;

use cloakroom::access::ApplicationKind::Private;
use cloakroom::rate_limits::write_heartbeat;
use cloakroom_testkit::{Client, LogCapture, TestVault};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::deployment::{Deployment, limit};
use super::{CHEAP, run_jobs};

const LIMIT: usize = 40;
const WINDOW: Duration = Duration::from_secs(1);

/// An admitted request: its node, and the interval in which it was admitted.
#[derive(Clone, Copy, Debug)]
struct Admission {
    node: usize,
    sent: Instant,
    received: Instant,
}

/// Sends five times the limit, to the nodes in turn.
async fn load(nodes: &[Client], seconds: u64) -> Vec<Admission> {
    let started_at = Instant::now();
    let mut requests = JoinSet::new();
    for at in 0..5 * LIMIT as u64 * seconds {
        let node = usize::try_from(at).unwrap() % nodes.len();
        let (client, at) = (
            nodes[node].clone(),
            started_at + Duration::from_millis(at * 5),
        );
        requests.spawn(async move {
            sleep_until(at).await;
            let sent = Instant::now();
            let response = client.get(CHEAP).await;
            let received = Instant::now();
            response.status.is_success().then_some(Admission {
                node,
                sent,
                received,
            })
        });
    }
    requests.join_all().await.into_iter().flatten().collect()
}

/// The largest number of admissions that certainly fell into one window.
fn fullest(admitted: &[Admission]) -> usize {
    let certain = |from: Instant| {
        let inside = |one: &&Admission| from <= one.sent && one.received < from + WINDOW;
        admitted.iter().filter(inside).count()
    };
    admitted
        .iter()
        .map(|one| certain(one.sent))
        .max()
        .unwrap_or(0)
}

enum Fault {
    Killed,
    Paused,
    Flushed,
}

/// Puts two nodes under load while a fault is injected into their Redis.
async fn limits_stay_bounded(fault: Fault) {
    let table = limit(
        "shared",
        "counter = \"key and ip\"; requests = 40; window = \"1s\"; action = \"throttle\"",
    );
    let mut deployment = Deployment::with_redis(&table).await;
    let second = deployment.node.second_node().await;
    let client = deployment.client(Private).await;
    let nodes = [client.clone(), client.at(&second.base_url)];
    let _jobs = [run_jobs(&deployment.node), run_jobs(&second)];
    for node in [&deployment.node, &second, &deployment.node] {
        write_heartbeat(&node.vault.rate_limits).await.unwrap();
    }

    let started_at = Instant::now();
    let redis = deployment.redis.take().unwrap();
    let inject = async {
        sleep_until(started_at + Duration::from_millis(1_500)).await;
        match fault {
            Fault::Killed => redis.kill().await,
            Fault::Paused => {
                let stopped = redis.pause();
                sleep(Duration::from_millis(3_000)).await;
                drop(stopped);
                sleep(Duration::from_millis(2_500)).await;
            }
            Fault::Flushed => redis.run("FLUSHALL").await,
        }
    };
    let (admitted, ()) = tokio::join!(load(&nodes, 6), inject);

    let fullest_overall = fullest(&admitted);
    let during: Vec<Admission> = admitted
        .iter()
        .copied()
        .filter(|one| {
            let since = one.sent - started_at;
            (Duration::from_millis(2_500)..Duration::from_millis(4_300)).contains(&since)
        })
        .collect();
    let shares: Vec<usize> = [0, 1]
        .map(|node| {
            let of_node: Vec<Admission> = during
                .iter()
                .copied()
                .filter(|one| one.node == node)
                .collect();
            fullest(&of_node)
        })
        .to_vec();
    println!(
        "{} admitted, {fullest_overall} in the fullest window, shares {shares:?}",
        admitted.len()
    );
    assert!(fullest_overall <= 2 * LIMIT, "{fullest_overall}");
    if !matches!(fault, Fault::Flushed) {
        assert!(
            shares.iter().all(|share| (10..=LIMIT / 2).contains(share)),
            "{shares:?}"
        );
    }
    assert!(admitted.len() >= 4 * LIMIT, "{}", admitted.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_stay_bounded_when_redis_is_killed() {
    limits_stay_bounded(Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_stay_bounded_while_redis_is_paused() {
    limits_stay_bounded(Fault::Paused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_stay_bounded_when_redis_is_flushed() {
    limits_stay_bounded(Fault::Flushed).await;
}

/// Sends sequential requests from a few clients and returns their latencies, sorted.
async fn latencies(node: &TestVault, key: &str, time: Duration) -> Vec<Duration> {
    let until = Instant::now() + time;
    let mut clients = JoinSet::new();
    for _ in 0..3 {
        let client = node.client_with(Some(key));
        clients.spawn(async move {
            let mut taken = Vec::new();
            while Instant::now() < until {
                let sent = Instant::now();
                assert!(client.get(CHEAP).await.status.is_success());
                taken.push(sent.elapsed());
            }
            taken
        });
    }
    let mut taken = clients.join_all().await.concat();
    taken.sort();
    taken
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() * 99 / 100]
}

/// Verifies that a fault raises the p99 latency by at most 5 ms.
///
/// The machine has other work and a single measurement varies, so the best of a few attempts counts.
async fn latency_stays_low(inject_fault: impl AsyncFn(&Deployment)) {
    let table = limit(
        "many",
        "counter = \"key and ip\"; requests = 100000; window = \"10s\"; action = \"throttle\"",
    );
    let mut best = Duration::MAX;
    for _ in 0..4 {
        let deployment = Deployment::with_redis(&table).await;
        let client = deployment.client(Private).await;
        let key = client.key().unwrap();
        let _jobs = run_jobs(&deployment.node);
        latencies(&deployment.node, key, Duration::from_millis(500)).await;

        let before = latencies(&deployment.node, key, Duration::from_secs(3)).await;
        let (during, ()) = tokio::join!(
            latencies(&deployment.node, key, Duration::from_secs(3)),
            async {
                sleep(Duration::from_millis(200)).await;
                inject_fault(&deployment).await;
            }
        );

        let (before_p99, during_p99) = (p99(&before), p99(&during));
        println!(
            "p99 before {before_p99:?} of {}, during {during_p99:?} of {}, longest {:?}",
            before.len(),
            during.len(),
            during.last()
        );
        best = best.min(during_p99.saturating_sub(before_p99));
        if best <= Duration::from_millis(5) {
            return;
        }
    }
    panic!("p99 rises by {best:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn latency_stays_low_while_redis_is_paused() {
    latency_stays_low(async |deployment| {
        let stopped = deployment.redis().pause();
        sleep(Duration::from_millis(2_500)).await;
        drop(stopped);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn latency_stays_low_when_redis_is_killed() {
    latency_stays_low(async |deployment| deployment.redis().sigkill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn latency_stays_low_when_redis_is_flushed() {
    latency_stays_low(async |deployment| deployment.redis().run("FLUSHALL").await).await;
}

#[tokio::test]
async fn fallback_and_recovery_are_logged_once() {
    let lines = LogCapture::start();
    let table = limit(
        "many",
        "counter = \"key\"; requests = 1000; window = \"10s\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;
    client.get(CHEAP).await;
    let stopped = deployment.redis().pause();

    for _ in 0..5 {
        assert!(client.get(CHEAP).await.status.is_success());
    }
    drop(stopped);
    // Requests do not detect the recovery; the background job does.
    client.get(CHEAP).await;
    assert_eq!(lines.count("limits are shared between nodes again"), 0);
    cloakroom::security_codes::tend(&deployment.node.vault.security_codes).await;
    client.get(CHEAP).await;
    client.get(CHEAP).await;

    for words in [
        "Redis is unavailable",
        "this node counts requests by itself",
        "Redis is available again",
        "limits are shared between nodes again",
    ] {
        assert_eq!(lines.count(words), 1, "{words} in {}", lines.text());
    }
}
