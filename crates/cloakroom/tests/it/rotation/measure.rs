//! What a rotation costs: rows per second, latencies of requests before and during it, and WAL per row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloakroom::rotation::{self, Phase};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Fixture, HOLDER, new_token};
use crate::support::{Client, number_or};

/// Requests that are sent at the same time while rows are created.
const WRITERS: usize = 24;
/// Clients of the load, each with a pause between its requests.
const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(20);
const BASELINE: Duration = Duration::from_secs(15);

/// `CLOAKROOM_TEST_ROTATION_ROWS=100000 cargo xtask services run -- cargo nextest run --workspace --run-ignored only
/// rotation::measure --no-capture`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures; takes minutes"]
async fn cost_of_a_rotation() {
    let rows = number_or("CLOAKROOM_TEST_ROTATION_ROWS", 20_000);
    let fixture = Fixture::create(10).await;
    fill(&fixture.client, rows).await;
    fixture.execute("vacuum analyze token").await;
    fixture.execute("checkpoint").await;

    let quiet = load_for(&fixture, BASELINE).await;
    quiet.print("before");
    let wal = wal_position(&fixture).await;
    fixture.start().await;
    fixture.advance_to(Phase::Rewriting).await;
    let started_at = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    let load = start_load(&fixture, &stop);
    while fixture.phase().await < Phase::Proving {
        rotation::work(&fixture.vault.vault, HOLDER).await.unwrap();
    }
    let rewriting = started_at.elapsed();
    stop.store(true, Ordering::Relaxed);
    let busy = Latencies::of(load.join_all().await);
    busy.print("during");
    let scan = Instant::now();
    fixture.advance_to(Phase::Proved).await;

    let rewritten = rotation::status(&fixture.vault.vault).await.unwrap()[0]
        .rotation
        .rewritten;
    let written = wal_position(&fixture).await - wal;
    println!(
        "{rewritten} rows in {:.1} s: {:.0} rows/s; scan {:.2} s; {:.0} bytes of WAL per row, with those of the load",
        rewriting.as_secs_f64(),
        rewritten as f64 / rewriting.as_secs_f64(),
        scan.elapsed().as_secs_f64(),
        written / rewritten as f64,
    );
    assert_eq!((quiet.failures, busy.failures), (0, 0));
    fixture.assert_all_under(2).await;
}

async fn fill(client: &Client, rows: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (client, next) = (client.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= rows {
                    break;
                }
                let created = client.post("/tokens", new_token(number)).await;
                assert_eq!(created.status, 201, "{}", created.body);
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

    fn print(&self, when: &str) {
        let at = |values: &[f64], share: f64| {
            let index = (values.len() as f64 * share) as usize;
            values.get(index).copied().unwrap_or_default()
        };
        println!(
            "{when}: creates p50 {:.1} ms, p99 {:.1} ms; reads p50 {:.1} ms, p99 {:.1} ms; {} requests, {} failed",
            at(&self.creates, 0.5),
            at(&self.creates, 0.99),
            at(&self.reads, 0.5),
            at(&self.reads, 0.99),
            self.creates.len() + self.reads.len(),
            self.failures,
        );
    }
}

async fn load_for(fixture: &Fixture, duration: Duration) -> Latencies {
    let stop = Arc::new(AtomicBool::new(false));
    let load = start_load(fixture, &stop);
    sleep(duration).await;
    stop.store(true, Ordering::Relaxed);
    Latencies::of(load.join_all().await)
}

fn start_load(fixture: &Fixture, stop: &Arc<AtomicBool>) -> JoinSet<Latencies> {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, stop) = (fixture.client.clone(), stop.clone());
        clients.spawn(async move {
            let mut latencies = Latencies::default();
            for number in 0.. {
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
                sleep(PAUSE).await;
            }
            latencies
        });
    }
    clients
}
