//! What a rotation costs: rows per second, latencies of requests before and during it, and WAL per row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloakroom::keys::VAULT;
use cloakroom::rotation::{self, Phase};
use cloakroom_crypto::KeyPurpose;
use cloakroom_testkit::{Client, number_or};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Fixture, HOLDER, new_token};

/// Requests that are sent at the same time while rows are created, and to find out how many the node serves.
const WRITERS: usize = 16;
/// Tokens that one request creates.
const BATCH: usize = 5;
/// Clients of the load, and its share of what the node serves.
const CLIENTS: usize = 8;
const SHARE: f64 = 0.6;
const CALIBRATION: Duration = Duration::from_secs(10);
const BASELINE: Duration = Duration::from_secs(60);

/// Replaces the key-encryption key and the data key of a tenant under load, as after a compromise.
///
/// `CLOAKROOM_TEST_ROTATION_ROWS=1000000 CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true cargo xtask services run -- cargo
/// nextest run --workspace --release --run-ignored only rotation::measure --no-capture`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures; takes minutes"]
async fn cost_of_a_rotation() {
    let rows = number_or("CLOAKROOM_TEST_ROTATION_ROWS", 20_000);
    let fixture = Fixture::create(10).await;
    fill(&fixture.client, rows).await;
    fixture.execute("vacuum analyze token").await;
    fixture.execute("checkpoint").await;

    let saturated = load_for(&fixture, WRITERS, Duration::ZERO, CALIBRATION).await;
    let interval = CALIBRATION.mul_f64(CLIENTS as f64 / saturated.pairs() / SHARE);
    saturated.print("saturated", CALIBRATION);
    let quiet = load_for(&fixture, CLIENTS, interval, BASELINE).await;
    quiet.print("before", BASELINE);

    let wal = wal_position(&fixture).await;
    let stop = Arc::new(AtomicBool::new(false));
    let load = start_load(&fixture, CLIENTS, interval, &stop);
    let vault = &fixture.vault.vault;
    let started_at = Instant::now();
    rotation::rotate_kek(vault, fixture.tenant.id, "tests")
        .await
        .unwrap();
    fixture.start().await;
    let mut rewriting = (Instant::now(), Instant::now());
    loop {
        match fixture.phase().await {
            Phase::Proved => break,
            phase if phase < Phase::Rewriting => rewriting.0 = Instant::now(),
            Phase::Rewriting => rewriting.1 = Instant::now(),
            _ => {}
        }
        rotation::work(vault, HOLDER).await.unwrap();
    }
    let scan = rewriting.1.elapsed();
    rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data)
        .await
        .unwrap();
    let (drill, rewriting) = (started_at.elapsed(), rewriting.1 - rewriting.0);
    stop.store(true, Ordering::Relaxed);
    let busy = Latencies::of(load.join_all().await);
    busy.print("during", drill);

    let status = rotation::status(vault).await.unwrap();
    // The last one: the key-encryption key was replaced before it.
    let rewritten = status.last().unwrap().rotation.rewritten;
    let written = wal_position(&fixture).await - wal;
    println!(
        "{rewritten} rows in {:.1} s: {:.0} rows/s; scan {:.2} s; all of it {:.1} s; {:.0} bytes of WAL per row, with those of the load",
        rewriting.as_secs_f64(),
        rewritten as f64 / rewriting.as_secs_f64(),
        scan.as_secs_f64(),
        drill.as_secs_f64(),
        written / rewritten as f64,
    );
    assert_eq!((quiet.failures, busy.failures), (0, 0));
    fixture.assert_all_under(2).await;
}

/// Replaces the control key of a vault with many events, applications and keys under load.
///
/// Run as [`cost_of_a_rotation`]. A tenth as many applications as events.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures; takes minutes"]
async fn cost_of_a_rotation_of_the_control_key() {
    let rows = number_or("CLOAKROOM_TEST_ROTATION_ROWS", 20_000);
    let fixture = Fixture::create(10).await;
    fill(&fixture.client, rows).await;
    for number in 0..rows / 10 {
        let application = json!({"name": format!("Shop {number}"), "type": "public", "permissions": ["token:create"]});
        let created = fixture.manager.post("/applications", application).await;
        assert_eq!(created.status, 201, "{}", created.body);
    }
    fixture.execute("vacuum analyze").await;
    let saturated = load_for(&fixture, WRITERS, Duration::ZERO, CALIBRATION).await;
    let interval = CALIBRATION.mul_f64(CLIENTS as f64 / saturated.pairs() / SHARE);
    let quiet = load_for(&fixture, CLIENTS, interval, BASELINE).await;
    quiet.print("before", BASELINE);

    let wal = wal_position(&fixture).await;
    let stop = Arc::new(AtomicBool::new(false));
    let load = start_load(&fixture, CLIENTS, interval, &stop);
    let vault = &fixture.vault.vault;
    let started_at = Instant::now();
    rotation::start(vault, VAULT, KeyPurpose::Control, "tests")
        .await
        .unwrap();
    while fixture.phase().await < Phase::Proved {
        rotation::work(vault, HOLDER).await.unwrap();
    }
    let duration = started_at.elapsed();
    stop.store(true, Ordering::Relaxed);
    let busy = Latencies::of(load.join_all().await);
    busy.print("during", duration);
    let written = wal_position(&fixture).await - wal;

    let status = rotation::status(vault).await.unwrap();
    let rewritten = status.last().unwrap().rotation.rewritten;
    println!(
        "{rewritten} rows in {:.1} s: {:.0} rows/s; {:.0} bytes of WAL per row, with those of the load",
        duration.as_secs_f64(),
        rewritten as f64 / duration.as_secs_f64(),
        written / rewritten as f64,
    );
    assert_eq!((quiet.failures, busy.failures), (0, 0));
    rotation::retire(vault, VAULT, KeyPurpose::Control)
        .await
        .unwrap();
}

/// Creates tokens, many with each request.
pub(super) async fn fill(client: &Client, rows: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (client, next) = (client.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= rows {
                    break;
                }
                let new: Vec<Value> = (first..first + BATCH).map(new_token).collect();
                let created = client.post("/tokenize", json!(new)).await;
                assert_eq!(created.status, 200, "{}", created.body);
            }
        });
    }
    writers.join_all().await;
}

async fn wal_position(fixture: &Fixture) -> f64 {
    let sql = "select (pg_current_wal_insert_lsn() - '0/0')::float8";
    fixture.database.query_one(sql, &[]).await.unwrap().get(0)
}

/// Latencies in milliseconds.
#[derive(Default)]
struct Latencies {
    creates: Vec<f64>,
    reads: Vec<f64>,
    failures: usize,
}

impl Latencies {
    fn of(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.creates.extend(part.creates);
            all.reads.extend(part.reads);
            all.failures += part.failures;
        }
        all.creates.sort_by(f64::total_cmp);
        all.reads.sort_by(f64::total_cmp);
        all
    }

    /// Pairs of a create and a read.
    fn pairs(&self) -> f64 {
        self.creates.len() as f64
    }

    fn print(&self, when: &str, duration: Duration) {
        let at = |values: &[f64], share: f64| {
            let index = (values.len() as f64 * share) as usize;
            values.get(index).copied().unwrap_or_default()
        };
        println!(
            "{when}: creates p50 {:.1} ms, p99 {:.1} ms; reads p50 {:.1} ms, p99 {:.1} ms; {:.0} requests/s, {} failed",
            at(&self.creates, 0.5),
            at(&self.creates, 0.99),
            at(&self.reads, 0.5),
            at(&self.reads, 0.99),
            2.0 * self.pairs() / duration.as_secs_f64(),
            self.failures,
        );
    }
}

async fn load_for(
    fixture: &Fixture,
    clients: usize,
    interval: Duration,
    duration: Duration,
) -> Latencies {
    let stop = Arc::new(AtomicBool::new(false));
    let load = start_load(fixture, clients, interval, &stop);
    sleep(duration).await;
    stop.store(true, Ordering::Relaxed);
    Latencies::of(load.join_all().await)
}

/// Each client creates a token and reads it, once per interval.
fn start_load(
    fixture: &Fixture,
    clients: usize,
    interval: Duration,
    stop: &Arc<AtomicBool>,
) -> JoinSet<Latencies> {
    let mut load = JoinSet::new();
    for _ in 0..clients {
        let (client, stop) = (fixture.client.clone(), stop.clone());
        load.spawn(async move {
            let mut latencies = Latencies::default();
            let mut ticks = tokio::time::interval(interval.max(Duration::from_micros(1)));
            for number in 0.. {
                ticks.tick().await;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let started_at = Instant::now();
                let created = client.post("/tokens", new_token(number)).await;
                let create = started_at.elapsed().as_secs_f64() * 1e3;
                let id = created.body["id"].as_str().unwrap_or("-").to_owned();
                let started_at = Instant::now();
                let read = client.get(&format!("/tokens/{id}")).await;
                let elapsed = started_at.elapsed().as_secs_f64() * 1e3;
                latencies.creates.push(create);
                latencies.reads.push(elapsed);
                latencies.failures += usize::from(created.status != 201 || read.status != 200);
            }
            latencies
        });
    }
    load
}
