//! A node that dies at any point of a rotation, under load: another one continues, and no request fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cloakroom::rotation::{self, Phase};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoints::arm;
use cloakroom_testkit::{Client, number_or};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Fixture, new_token};

/// Failpoints, and at which of their hits they interrupt a rotation.
const FAILPOINTS: &[(&str, u32)] = &[
    ("rotation.before_change", 1),
    ("rotation.within_change", 1),
    ("rotation.after_change", 1),
    ("rotation.before_change", 2),
    ("rotation.within_change", 2),
    ("rotation.after_change", 2),
    ("rotation.drained", 1),
    ("rotation.page_written", 1),
    ("rotation.page_written", 2),
    ("rotation.page_written", 4),
    ("rotation.rewritten", 1),
    ("rotation.scanned", 1),
    ("rotation.signed", 1),
];

/// Requests that run while keys are rotated.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
    clients: JoinSet<Vec<String>>,
}

impl Load {
    /// Each client creates, changes and reads tokens, and returns what failed.
    pub(super) fn start(clients: Vec<Client>) -> Self {
        let mut load = Self {
            stop: Arc::default(),
            requests: Arc::default(),
            clients: JoinSet::new(),
        };
        for client in clients {
            let (stop, requests) = (load.stop.clone(), load.requests.clone());
            load.clients.spawn(async move {
                let mut failures = Vec::new();
                for number in 0.. {
                    let created = client.post("/tokens", new_token(number)).await;
                    let path = format!("/tokens/{}", created.body["id"].as_str().unwrap_or("-"));
                    let metadata = json!({"metadata": {"number": "changed"}});
                    let patched = client.patch(&path, metadata).await;
                    let read = client.get(&path).await;
                    let is_same = read.body["data"] == new_token(number)["data"];
                    for (response, status) in [(created, 201), (patched, 200), (read, 200)] {
                        requests.fetch_add(1, Ordering::Relaxed);
                        if response.status != status {
                            failures.push(format!("{}: {}", response.status, response.body));
                        }
                    }
                    if !is_same {
                        failures.push("other data".to_owned());
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // Every token is rewritten in each round.
                    sleep(Duration::from_millis(30)).await;
                }
                failures
            });
        }
        load
    }

    pub(super) async fn finish(self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.clients.join_all().await.concat();
        (self.requests.load(Ordering::Relaxed), failures)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_survives_the_death_of_its_node_at_every_point() {
    let kills = number_or("CLOAKROOM_TEST_ROTATION_KILLS", 1);
    let fixture = Fixture::create(450).await;
    let other = fixture.vault.second_node().await;
    let on_other = fixture.client.at(&other.base_url);
    let load = Load::start(vec![fixture.client.clone(), on_other.clone()]);
    let vault = &fixture.vault.vault;

    let points = (0..kills).flat_map(|_| FAILPOINTS);
    for (round, (name, hits)) in points.enumerate() {
        fixture.start().await;
        arm(name, *hits);
        let mut died = false;
        for _ in 0..200 {
            match rotation::work(vault, super::HOLDER).await {
                Ok(_) if fixture.phase().await == Phase::Proved => break,
                Ok(_) => sleep(Duration::from_millis(5)).await,
                Err(_) => {
                    died = true;
                    break;
                }
            }
        }
        assert!(died, "{name} {hits} was not reached");

        // Another node continues.
        super::advance_to(&other.vault, Phase::Proved).await;
        rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data)
            .await
            .unwrap();
        let version = i32::try_from(round + 2).unwrap() % 256;
        fixture.assert_all_under(version).await;
    }

    let (requests, failures) = load.finish().await;
    assert_eq!(failures, Vec::<String>::new(), "of {requests} requests");
    assert!(requests > 100, "{requests}");
    fixture.assert_readable(&on_other).await;
    assert_eq!(
        rotation::verify_proofs(vault).await.unwrap(),
        Vec::<String>::new()
    );
}

/// Failpoints of a rotation of digests, which has fewer pages.
const DIGEST_FAILPOINTS: &[(&str, u32)] = &[
    ("rotation.before_change", 1),
    ("rotation.within_change", 1),
    ("rotation.after_change", 1),
    ("rotation.before_change", 2),
    ("rotation.after_change", 2),
    ("rotation.drained", 1),
    ("rotation.page_written", 1),
    ("rotation.page_written", 2),
    ("rotation.rewritten", 1),
    ("rotation.scanned", 1),
    ("rotation.signed", 1),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_of_digests_survives_the_death_of_its_node_at_every_point() {
    let fixture = Fixture::create(210).await;
    let other = fixture.vault.second_node().await;
    let on_other = fixture.client.at(&other.base_url);
    let load = Load::start(vec![fixture.client.clone(), on_other.clone()]);
    let (vault, tenant) = (&fixture.vault.vault, fixture.tenant.id);

    let purposes = [KeyPurpose::Index, KeyPurpose::Fingerprint];
    for ((name, hits), purpose) in DIGEST_FAILPOINTS.iter().zip(purposes.iter().cycle()) {
        rotation::start(vault, tenant, *purpose, "tests")
            .await
            .unwrap();
        fixture.advance_until(name, *hits).await;
        // Another node continues.
        super::advance_to(&other.vault, Phase::Proved).await;
        if *purpose == KeyPurpose::Fingerprint {
            arm("rotation.pairs_deleted", 1);
            rotation::retire(vault, tenant, *purpose).await.unwrap_err();
        }
        rotation::retire(vault, tenant, *purpose).await.unwrap();
    }

    let (requests, failures) = load.finish().await;
    assert_eq!(failures, Vec::<String>::new(), "of {requests} requests");
    assert!(requests > 100, "{requests}");
    fixture.assert_readable(&on_other).await;
    for number in [0, 7, 209] {
        let query = json!({"query": format!("metadata.number:{number}")});
        for client in [&fixture.client, &on_other] {
            let found = client.post("/v2/tokens/search", query.clone()).await;
            let is_it = |token: &serde_json::Value| token["id"] == fixture.tokens[number];
            assert!(found.items().iter().any(is_it), "{number}: {}", found.body);
        }
    }
    assert_eq!(
        rotation::verify_proofs(vault).await.unwrap(),
        Vec::<String>::new()
    );
}

/// Failpoints that a rotation passes again after it was interrupted there.
const REPEATABLE: [&str; 7] = [
    "rotation.before_change",
    "rotation.within_change",
    "rotation.drained",
    "rotation.page_written",
    "rotation.rewritten",
    "rotation.scanned",
    "rotation.signed",
];

/// `CLOAKROOM_TEST_ROTATION_ROWS=1000000 CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true cargo xtask services run -- cargo
/// nextest run --workspace --release --run-ignored only rotation::interruptions --no-capture`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn a_rotation_of_many_rows_survives_many_deaths() {
    let kills = number_or("CLOAKROOM_TEST_ROTATION_KILLS", 20);
    let rows = number_or("CLOAKROOM_TEST_ROTATION_ROWS", 20_000);
    let fixture = Fixture::create(450).await;
    super::measure::fill(&fixture.client, rows).await;
    let other = fixture.vault.second_node().await;
    let nodes = [&fixture.vault.vault, &other.vault];
    let on_other = fixture.client.at(&other.base_url);
    let load = Load::start(vec![fixture.client.clone(), on_other.clone()]);
    fixture.start().await;

    // Deaths while pages are written are spread over the rows.
    let pages = u32::try_from(rows / 200 / (kills + 1)).unwrap().max(1);
    let mut deaths = 0;
    for name in REPEATABLE {
        for kill in 0..kills {
            let hits = match name {
                "rotation.page_written" => pages,
                _ => 1,
            };
            arm(name, hits);
            while rotation::work(nodes[kill % 2], super::HOLDER).await.is_ok() {
                assert!(
                    fixture.phase().await < Phase::Proved,
                    "{name} was not reached"
                );
            }
            deaths += 1;
        }
    }
    while fixture.phase().await < Phase::Proved {
        rotation::work(nodes[0], super::HOLDER).await.unwrap();
    }
    rotation::retire(nodes[0], fixture.tenant.id, KeyPurpose::Data)
        .await
        .unwrap();

    let (requests, failures) = load.finish().await;
    println!(
        "{deaths} deaths, {rows} rows, {requests} requests, {} failed",
        failures.len()
    );
    assert_eq!(failures, Vec::<String>::new(), "of {requests} requests");
    fixture.assert_all_under(2).await;
    fixture.assert_readable(&on_other).await;
    let findings = rotation::verify_proofs(nodes[0]).await.unwrap();
    assert_eq!(findings, Vec::<String>::new());
}
