//! Concurrent creates and updates of equal tokens on two nodes.

use std::collections::BTreeSet;
use std::time::Instant;

use cloakroom::access::{ApplicationKind, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{counts, deduplicated, is_duplicate, updating_tenant};

const CREATORS: usize = 64;

const ROUNDS: usize = 5;

/// Many clients of one application, spread over two nodes.
struct ClientPool {
    clients: Vec<Client>,
}

impl ClientPool {
    async fn new(vault: &TestVault, node: &TestVault, tenant: &Tenant) -> Self {
        let holder = vault
            .holder(
                tenant,
                ApplicationKind::Private,
                everything(Transform::Reveal),
            )
            .await;
        let at = |n: usize| [vault, node][n % 2].client_with(Some(&holder.key));
        Self {
            clients: (0..CREATORS).map(at).collect(),
        }
    }

    /// Sends one create per client concurrently.
    async fn create(&self, new: impl Fn(usize) -> Value) -> Vec<TestResponse> {
        let mut creating = tokio::task::JoinSet::new();
        for (n, client) in self.clients.iter().cloned().enumerate() {
            let new = new(n);
            creating.spawn(async move { client.post("/tokens", new).await });
        }
        creating.join_all().await
    }
}

fn assert_one_token(responses: &[TestResponse], round: usize) {
    for response in responses {
        assert_eq!(
            response.status,
            StatusCode::CREATED,
            "round {round}: {}",
            response.body
        );
    }
    let ids: BTreeSet<String> = responses.iter().map(TestResponse::id).collect();
    let created = responses
        .iter()
        .filter(|response| !is_duplicate(response))
        .count();
    assert_eq!((ids.len(), created), (1, 1), "round {round}: {ids:?}");
}

/// I04: concurrent creates yield one token per fingerprint and container.
///
/// Covers 7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_equal_creates_insert_one_token() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let pool = ClientPool::new(&vault, &node, &tenant).await;
    let started_at = Instant::now();

    for round in 0..ROUNDS {
        let responses = pool
            .create(|n| {
                deduplicated(
                    &json!(["round", round]),
                    json!({"metadata": {"n": n.to_string()}}),
                )
            })
            .await;
        assert_one_token(&responses, round);
        let count = i64::try_from(round + 1).unwrap();
        assert_eq!(counts(&vault).await, (count, count), "round {round}");
    }
    println!(
        "{ROUNDS} rounds of {CREATORS} equal creates on two nodes: one token each, {} ms a round",
        started_at.elapsed().as_millis() / ROUNDS as u128
    );
}

/// Covers 7.10, 7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_equal_creates_with_the_same_id_do_not_conflict() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let pool = ClientPool::new(&vault, &node, &tenant).await;

    for round in 0..ROUNDS {
        let id = format!("round {round}");
        let responses = pool
            .create(|_| deduplicated(&json!(round), json!({"id": id})))
            .await;
        assert_one_token(&responses, round);
        assert_eq!(responses[0].id(), id);
    }
}

/// Covers 7.13, 7.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_equal_creates_are_all_merged() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let tenant = updating_tenant(&vault).await;
    let pool = ClientPool::new(&vault, &node, &tenant).await;
    let started_at = Instant::now();

    // The clients send 50 different entries, the maximum of metadata.
    let own = |n: usize| json!({"metadata": {(format!("k{}", n % 50)): "v"}});
    let responses = pool.create(|n| deduplicated(&json!("x"), own(n))).await;

    println!(
        "{CREATORS} merges into one token: {} ms",
        started_at.elapsed().as_millis()
    );
    assert_one_token(&responses, 0);
    let path = format!("/tokens/{}", responses[0].id());
    let found = pool.clients[0].get(&path).await;
    assert_eq!(found.body["metadata"].as_object().unwrap().len(), 50);
}

/// Covers 7.13, 7.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_updates_to_equal_data_return_one_token() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let pool = ClientPool::new(&vault, &node, &tenant).await;

    for round in 0..ROUNDS {
        let different = pool
            .create(|n| deduplicated(&json!([round, n]), json!({})))
            .await;
        let mut updating = tokio::task::JoinSet::new();
        for (client, token) in pool.clients.iter().cloned().zip(&different) {
            let path = format!("/tokens/{}", token.id());
            let patch = json!({"data": [round, "same"], "deduplicate_token": true});
            updating.spawn(async move { client.patch(&path, patch).await });
        }
        let updated = updating.join_all().await;

        for response in &updated {
            assert_eq!(
                response.status,
                StatusCode::OK,
                "round {round}: {}",
                response.body
            );
        }
        let ids: BTreeSet<String> = updated.iter().map(TestResponse::id).collect();
        let created = updated
            .iter()
            .filter(|response| !is_duplicate(response))
            .count();
        assert_eq!((ids.len(), created), (1, 1), "round {round}");
    }
}
