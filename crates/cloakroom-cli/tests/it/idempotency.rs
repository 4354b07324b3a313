//! One idempotent request, sent by a hundred clients to several nodes that are killed meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::support::{Deployment, Node, query, runtime};

const NODES: usize = 3;
const CLIENTS: usize = 100;
/// Idempotency keys in use at a time.
const KEYS_AT_ONCE: usize = 2;
/// Interval between kills; nodes are killed in turn.
const KILL_PERIOD: Duration = Duration::from_millis(1_500);
/// How long a client retries. Longer than several leases.
const TIMEOUT: Duration = Duration::from_secs(120);

/// CI uses a few keys; `CLOAKROOM_TEST_KEYS` sets the number.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the size of the test"
)]
fn keys() -> usize {
    let number = std::env::var("CLOAKROOM_TEST_KEYS").ok();
    number.map_or(40, |text| text.parse().unwrap())
}

/// Counts of all attempts.
#[derive(Default)]
struct Counts {
    attempts: AtomicUsize,
    conflicts: AtomicUsize,
    unavailable: AtomicUsize,
    lost: AtomicUsize,
}

/// The state that clients share.
#[derive(Clone)]
struct Clients {
    http: reqwest::Client,
    api_key: Arc<str>,
    urls: Arc<RwLock<Vec<String>>>,
    counts: Arc<Counts>,
}

/// A successful response: body and `Location`.
type Created = (String, String);

impl Clients {
    /// Sends the request to one node after the other until one of them succeeds.
    async fn send_until_created(self, key: String, client: usize) -> Created {
        let deadline = Instant::now() + TIMEOUT;
        for attempt in client.. {
            assert!(Instant::now() < deadline, "{key} never succeeded");
            let url = self.urls.read().unwrap()[attempt % NODES].clone();
            self.counts.attempts.fetch_add(1, Ordering::Relaxed);
            let request = self.http.post(format!("{url}/tokens"));
            let request = request
                .header("bt-api-key", &*self.api_key)
                .header("bt-idempotency-key", &key)
                .header("content-type", "application/json")
                .body(format!(
                    r#"{{"type":"token","data":"asked","metadata":{{"key":"{key}"}}}}"#
                ));
            let response = async {
                let response = request.send().await.ok()?;
                let status = response.status();
                let location = response.headers().get("location");
                let location = location
                    .map_or("", |text| text.to_str().unwrap())
                    .to_owned();
                Some((status, response.text().await.ok()?, location))
            };
            match response.await {
                Some((StatusCode::CREATED, body, location)) => return (body, location),
                Some((StatusCode::CONFLICT, ..)) => &self.counts.conflicts,
                Some((StatusCode::SERVICE_UNAVAILABLE, ..)) => &self.counts.unavailable,
                Some((status, body, _)) => panic!("{status}: {body}"),
                None => &self.counts.lost,
            }
            .fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        unreachable!("attempts do not end")
    }

    /// Sends the request from all clients at once. All responses must be identical.
    async fn send_concurrently(self, key: String) -> Created {
        let mut running = JoinSet::new();
        for client in 0..CLIENTS {
            running.spawn(self.clone().send_until_created(key.clone(), client));
        }
        let mut responses = running.join_all().await;
        let first = responses.pop().unwrap();
        assert!(responses.iter().all(|response| *response == first), "{key}");
        first
    }

    /// Sends one request per key, a few keys at a time.
    async fn send_all(self, keys: usize) -> BTreeMap<String, Created> {
        let mut responses = BTreeMap::new();
        let mut running = JoinSet::new();
        for number in 0..keys {
            let (clients, key) = (self.clone(), format!("key {number}"));
            running.spawn(async move { (key.clone(), clients.send_concurrently(key).await) });
            if running.len() == KEYS_AT_ONCE {
                responses.extend(running.join_next().await.map(Result::unwrap));
            }
        }
        responses.extend(running.join_all().await);
        responses
    }
}

/// Kills and restarts one node after the other until `stop`.
fn kill_in_turn(
    deployment: &Deployment,
    nodes: &Mutex<Vec<Node>>,
    urls: &RwLock<Vec<String>>,
    stop: &AtomicBool,
) -> usize {
    for kills in 0.. {
        std::thread::sleep(KILL_PERIOD);
        if stop.load(Ordering::Relaxed) {
            return kills;
        }
        nodes.lock().unwrap()[kills % NODES].signal("KILL");
        let node = deployment.serve();
        urls.write().unwrap()[kills % NODES] = node.base_url.clone();
        nodes.lock().unwrap()[kills % NODES] = node;
    }
    unreachable!("kills do not end")
}

/// I03.
#[test]
fn a_hundred_clients_of_three_killed_nodes_get_one_token_and_one_response() {
    let (deployment, api_keys) = Deployment::with_keys(&["/ mask token:create"]);
    deployment.configure("[idempotency]\nlease = \"3s\"");
    let nodes: Vec<Node> = (0..NODES).map(|_| deployment.serve()).collect();
    let urls = nodes.iter().map(|node| node.base_url.clone()).collect();
    let clients = Clients {
        // Another process may use the port of a killed node by now.
        http: reqwest::Client::builder()
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap(),
        api_key: api_keys[0].as_str().into(),
        urls: Arc::new(RwLock::new(urls)),
        counts: Arc::default(),
    };
    let (nodes, stop) = (Mutex::new(nodes), AtomicBool::new(false));
    let (keys, urls, counts) = (keys(), clients.urls.clone(), clients.counts.clone());
    let (responses, kills) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_in_turn(&deployment, &nodes, &urls, &stop));
        let sending = scope.spawn(|| runtime().block_on(clients.send_all(keys)));
        let responses = sending.join();
        stop.store(true, Ordering::Relaxed);
        (responses.unwrap(), killer.join().unwrap())
    });

    let sql = "select metadata from token";
    let tokens: Vec<String> = query(&deployment.postgres, sql);
    let [attempts, conflicts, unavailable, lost] = [
        &counts.attempts,
        &counts.conflicts,
        &counts.unavailable,
        &counts.lost,
    ]
    .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{keys} keys, {CLIENTS} clients each, {NODES} nodes, {kills} killed: {attempts} attempts \
         ({conflicts} conflicts, {unavailable} unavailable, {lost} lost), \
         {} tokens, {} too many",
        tokens.len(),
        tokens.len().saturating_sub(keys)
    );
    assert!(kills > 0, "no node was killed");
    assert_eq!(responses.len(), keys);
    assert_eq!(tokens.len(), keys);
    for (key, (body, location)) in &responses {
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["metadata"]["key"], key.as_str());
        assert!(
            location.ends_with(body["id"].as_str().unwrap()),
            "{location}"
        );
        let of_key = tokens
            .iter()
            .filter(|text| text.contains(&format!("\"{key}\"")));
        assert_eq!(of_key.count(), 1, "{key}");
    }
}
