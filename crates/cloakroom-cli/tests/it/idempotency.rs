//! One request, asked a hundred times at once of several nodes, some of which die meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::support::{Deployment, Node, ask, runtime};

const NODES: usize = 3;
const ASKERS: usize = 100;
/// Keys that are asked for at a time.
const KEYS_AT_ONCE: usize = 2;
/// A node dies this often, one after the other.
const KILL_PERIOD: Duration = Duration::from_millis(1_500);
/// How long an asker tries. Longer than several leases.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pipeline takes a few; `CLOAKROOM_TEST_KEYS` makes it a thousand.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are told their size by the environment"
)]
fn keys() -> usize {
    let given = std::env::var("CLOAKROOM_TEST_KEYS").ok();
    given.map_or(40, |text| text.parse().unwrap())
}

/// What happened to all attempts together.
#[derive(Default)]
struct Tally {
    attempts: AtomicUsize,
    conflicts: AtomicUsize,
    unavailable: AtomicUsize,
    lost: AtomicUsize,
}

/// Everything that askers share.
#[derive(Clone)]
struct Stage {
    http: reqwest::Client,
    api_key: Arc<str>,
    urls: Arc<RwLock<Vec<String>>>,
    tally: Arc<Tally>,
}

/// What a client gets in the end: body and address.
type Answer = (String, String);

impl Stage {
    /// Asks one node after the other until one of them answers.
    async fn ask_until_answered(self, key: String, asker: usize) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        for attempt in asker.. {
            assert!(Instant::now() < deadline, "{key} was never answered");
            let url = self.urls.read().unwrap()[attempt % NODES].clone();
            self.tally.attempts.fetch_add(1, Ordering::Relaxed);
            let request = self.http.post(format!("{url}/tokens"));
            let request = request
                .header("bt-api-key", &*self.api_key)
                .header("bt-idempotency-key", &key)
                .header("content-type", "application/json")
                .body(format!(
                    r#"{{"type":"token","data":"asked","metadata":{{"key":"{key}"}}}}"#
                ));
            let answer = async {
                let response = request.send().await.ok()?;
                let status = response.status();
                let location = response.headers().get("location");
                let location = location
                    .map_or("", |text| text.to_str().unwrap())
                    .to_owned();
                Some((status, response.text().await.ok()?, location))
            };
            match answer.await {
                Some((StatusCode::CREATED, body, location)) => return (body, location),
                Some((StatusCode::CONFLICT, ..)) => &self.tally.conflicts,
                Some((StatusCode::SERVICE_UNAVAILABLE, ..)) => &self.tally.unavailable,
                Some((status, body, _)) => panic!("{status}: {body}"),
                None => &self.tally.lost,
            }
            .fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        unreachable!("attempts do not end")
    }

    /// A hundred askers at once; their answers must be the same to the byte.
    async fn ask_at_once(self, key: String) -> Answer {
        let mut askers = JoinSet::new();
        for asker in 0..ASKERS {
            askers.spawn(self.clone().ask_until_answered(key.clone(), asker));
        }
        let mut answers = askers.join_all().await;
        let first = answers.pop().unwrap();
        assert!(answers.iter().all(|answer| *answer == first), "{key}");
        first
    }

    /// Asks for every key, a few at a time.
    async fn ask_for_all(self, keys: usize) -> BTreeMap<String, Answer> {
        let mut answers = BTreeMap::new();
        let mut asking = JoinSet::new();
        for number in 0..keys {
            let (stage, key) = (self.clone(), format!("key {number}"));
            asking.spawn(async move { (key.clone(), stage.ask_at_once(key).await) });
            if asking.len() == KEYS_AT_ONCE {
                answers.extend(asking.join_next().await.map(Result::unwrap));
            }
        }
        answers.extend(asking.join_all().await);
        answers
    }
}

/// Kills one node after the other and starts another in its place, until told to stop.
fn kill_one_by_one(
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
fn a_hundred_askers_of_three_dying_nodes_get_one_token_and_one_answer() {
    let (deployment, api_keys) = Deployment::with_keys(&["/ reveal token:create"]);
    deployment.configure("[idempotency]\nlease = \"3s\"");
    let nodes: Vec<Node> = (0..NODES).map(|_| deployment.serve()).collect();
    let urls = nodes.iter().map(|node| node.base_url.clone()).collect();
    let stage = Stage {
        // The port of a dead node may be anybody's by now.
        http: reqwest::Client::builder()
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap(),
        api_key: api_keys[0].as_str().into(),
        urls: Arc::new(RwLock::new(urls)),
        tally: Arc::default(),
    };
    let (nodes, stop) = (Mutex::new(nodes), AtomicBool::new(false));
    let (keys, urls, tally) = (keys(), stage.urls.clone(), stage.tally.clone());
    let (answers, kills) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_one_by_one(&deployment, &nodes, &urls, &stop));
        let asking = scope.spawn(|| runtime().block_on(stage.ask_for_all(keys)));
        let answers = asking.join();
        stop.store(true, Ordering::Relaxed);
        (answers.unwrap(), killer.join().unwrap())
    });

    let sql = "select metadata from token";
    let made: Vec<String> = ask(&deployment.postgres, sql);
    let [attempts, conflicts, unavailable, lost] = [
        &tally.attempts,
        &tally.conflicts,
        &tally.unavailable,
        &tally.lost,
    ]
    .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{keys} keys, {ASKERS} askers each, {NODES} nodes, {kills} killed: {attempts} attempts \
         ({conflicts} told to wait, {unavailable} unavailable, {lost} lost with a node), \
         {} tokens, {} too many",
        made.len(),
        made.len().saturating_sub(keys)
    );
    assert!(kills > 0, "no node was killed");
    assert_eq!(answers.len(), keys);
    assert_eq!(made.len(), keys);
    for (key, (body, location)) in &answers {
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["metadata"]["key"], key.as_str());
        assert!(
            location.ends_with(body["id"].as_str().unwrap()),
            "{location}"
        );
        let of_key = made
            .iter()
            .filter(|text| text.contains(&format!("\"{key}\"")));
        assert_eq!(of_key.count(), 1, "{key}");
    }
}
