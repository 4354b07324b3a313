//! No event of an acknowledged change is lost: nodes stop at any time, and the endpoint fails for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloakroom::webhooks::deliveries;
use cloakroom_testkit::number_or;
use http::StatusCode;
use serde_json::json;
use tokio::task::JoinSet;

use super::Fixture;
use super::endpoint::Behavior::Status;

/// Concurrent writers, and nodes that deliver.
const WRITERS: usize = 16;
const NODES: usize = 3;

/// `CLOAKROOM_TEST_EVENTS` sets the number of events.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_event_of_an_acknowledged_change_is_lost() {
    let events = number_or("CLOAKROOM_TEST_EVENTS", 300);
    let fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    let started = Instant::now();

    let nodes = Arc::new(tokio::sync::Mutex::new(Vec::new()));
    for _ in 0..NODES {
        nodes.lock().await.push(start_node(&fixture));
    }
    let mut writers = JoinSet::new();
    let next = Arc::new(AtomicUsize::new(0));
    for _ in 0..WRITERS {
        let (client, next) = (fixture.client.clone(), next.clone());
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < events {
                let token = json!({"type": "token", "data": "a"});
                let created = client.post("/tokens", token).await;
                if created.status == StatusCode::CREATED {
                    acknowledged.push(created.id());
                }
            }
            acknowledged
        });
    }
    // Kills a node, whose attempts in progress have no outcome, or lets the endpoint fail, several times.
    let is_over = AtomicBool::new(false);
    let faults = async {
        let mut faults = 0;
        while !is_over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let mut nodes = nodes.lock().await;
            nodes.remove(0);
            nodes.push(start_node(&fixture));
            drop(nodes);
            fixture.endpoint.respond(Status(503));
            tokio::time::sleep(Duration::from_millis(300)).await;
            fixture.endpoint.respond(Status(200));
            faults += 1;
        }
        faults
    };
    let writes = async {
        let acknowledged = writers.join_all().await.concat();
        is_over.store(true, Ordering::Relaxed);
        acknowledged
    };
    let (acknowledged, faults) = tokio::join!(writes, faults);
    let written = started.elapsed();
    wait_until_delivered(&fixture).await;

    let received = fixture.endpoint.received();
    let mut accepted: HashMap<&str, usize> = HashMap::new();
    for request in received.iter().filter(|request| request.is_accepted) {
        let id = &request.event()["data"]["token"]["id"];
        *accepted.entry(id.as_str().unwrap()).or_default() += 1;
    }
    let is_lost = |id: &&String| !accepted.contains_key(id.as_str());
    let lost: Vec<&String> = acknowledged.iter().filter(is_lost).collect();
    let duplicates = accepted.values().sum::<usize>() - accepted.len();
    println!(
        "{} events in {written:.1?}, delivered in {:.1?} by {} requests; {} lost, {duplicates} duplicates, {faults} faults",
        acknowledged.len(),
        started.elapsed(),
        received.len(),
        lost.len(),
    );
    assert_eq!(acknowledged.len(), events);
    assert_eq!(lost, [] as [&String; 0]);
}

/// A node: its jobs stop without a trace when it is dropped.
fn start_node(fixture: &Fixture) -> JoinSet<()> {
    let mut node = JoinSet::new();
    node.spawn(deliveries::run(fixture.vault.vault.webhooks.clone()));
    node
}

/// Skips delays of retries and claims of stopped nodes until nothing is pending.
async fn wait_until_delivered(fixture: &Fixture) {
    let connection = fixture.vault.database.connect().await;
    let deadline = Instant::now() + Duration::from_secs(600);
    let mut last = i64::MAX;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let sql = "select count(*) from webhook_delivery where state = 1";
        let pending: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
        if pending == 0 {
            return;
        }
        // Without progress, everything that is left waits for a retry or a claim to end.
        if pending == last {
            fixture.skip_delays().await;
        }
        last = pending;
        assert!(Instant::now() < deadline, "{pending} events are pending");
    }
}
