//! Thousands of malformed bodies on every route that accepts one, with a well-behaved client running concurrently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloakroom_testkit::{Client, SeededRng, TestResponse, TestVault, number_or};
use http::StatusCode;
use serde_json::json;
use tokio::task::JoinSet;

use super::corruption::{CORRUPTIONS, Corruption, RequestBody};
use super::target::{self, BodyFormat, Target};

/// Maximum response time in an optimized build.
const TIME_MAX: Duration = Duration::from_millis(10);
/// Attempts for a slow body, because other load on the machine can make any body slow.
const TRIES: usize = 4;

/// Malformed bodies are rejected quickly and without echoing their content, nothing panics, and a concurrent client
/// gets correct responses.
#[tokio::test]
async fn malformed_bodies_are_rejected_quickly_and_without_side_effects() {
    let panics = count_panics();
    let vault = TestVault::start_with_long_timeouts().await;
    let mut chance = SeededRng::from_environment();
    let count = number_or("CLOAKROOM_TEST_BODIES", 2_000);
    let canary = card_number(&mut chance);
    let targets = target::all(&vault, &canary).await;
    for target in &targets {
        check_valid(target).await;
    }
    let has_no_body = |target: &Target| target.format == BodyFormat::Nothing;
    let (others, targets): (Vec<_>, Vec<_>) = targets.into_iter().partition(has_no_body);
    let concurrent = ConcurrentClient::start(vault.revealing_client().await);

    let mut tally = Tally {
        canary: canary.clone(),
        ..Tally::default()
    };
    for index in 0..count {
        // Iterates over all corruptions and routes; only their details are random. Routes without a body get fewer
        // requests.
        let among = if index % 10 == 0 { &others } else { &targets };
        let target = &among[index % among.len()];
        let corruption = &CORRUPTIONS[(index / among.len() + index) % CORRUPTIONS.len()];
        let malformed = (corruption.apply)(&mut chance, &target.body, &canary);
        tally.add(target, corruption, &malformed).await;
    }
    let (rounds, concurrent_times) = concurrent.stop().await;

    println!(
        "{count} bodies derived from {}: {:?}",
        targets.len() + others.len(),
        tally.statuses
    );
    println!("response times: {}", percentiles(&mut tally.times));
    println!("slowest: {}", tally.slowest);
    println!(
        "concurrent client, {rounds} rounds: {}",
        percentiles(&mut concurrent_times.clone())
    );
    assert_eq!(panics.load(Ordering::Relaxed), 0);
    assert!(
        tally.failures.is_empty(),
        "{}: {:#?}",
        tally.failures.len(),
        tally.failures
    );
    assert!(rounds > 0);
}

/// Results of all bodies.
#[derive(Default)]
struct Tally {
    statuses: BTreeMap<u16, usize>,
    times: Vec<Duration>,
    slowest: String,
    failures: Vec<String>,
    /// Must not occur in any error response.
    canary: String,
}

impl Tally {
    async fn add(&mut self, target: &Target, corruption: &Corruption, malformed: &RequestBody) {
        let mut taken = Duration::MAX;
        for attempt in 0..TRIES {
            let begun = Instant::now();
            let response = target.send(malformed).await;
            taken = taken.min(begun.elapsed());
            if attempt == 0 {
                self.check(target, corruption, malformed, response.as_ref());
            }
            if cfg!(debug_assertions) || taken <= TIME_MAX {
                break;
            }
        }
        let case = format!("{}, {}: {taken:?}", target.route, corruption.name);
        if self.times.iter().all(|other| *other < taken) {
            self.slowest.clone_from(&case);
        }
        self.times.push(taken);
        if !cfg!(debug_assertions) && taken > TIME_MAX {
            self.failures.push(format!("slow: {case}"));
        }
    }

    fn check(
        &mut self,
        target: &Target,
        corruption: &Corruption,
        malformed: &RequestBody,
        response: Option<&TestResponse>,
    ) {
        let Some(response) = response else {
            // The server may close the connection before a client that sends too much has read the response.
            if malformed.bytes.len() < 1024 * 1024 {
                self.failures.push(format!(
                    "{}, {}: no response",
                    target.route, corruption.name
                ));
            }
            return;
        };
        *self.statuses.entry(response.status.as_u16()).or_default() += 1;
        let text = String::from_utf8_lossy(&response.bytes);
        let headers = format!("{:?}", response.headers);
        let is_disclosed = (text.contains(&self.canary) && !response.status.is_success())
            || headers.contains(&self.canary);
        let is_accepted = corruption.is_fatal
            && matches!(target.format, BodyFormat::Json(_))
            && response.status.is_success();
        let faults = [
            (is_failure(response.status), "server error"),
            (is_disclosed, "canary disclosed"),
            (is_accepted, "accepted"),
        ];
        for (_, fault) in faults.iter().filter(|(is_so, _)| *is_so) {
            let start = String::from_utf8_lossy(&malformed.bytes[..malformed.bytes.len().min(300)]);
            self.failures.push(format!(
                "{}, {}: {fault}: {} {text} for {start}",
                target.route, corruption.name, response.status
            ));
        }
    }
}

/// Routes that are not built return 501 on purpose.
fn is_failure(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// Asserts that the valid body is accepted; otherwise corrupting it would prove nothing.
async fn check_valid(target: &Target) {
    let valid = RequestBody {
        bytes: target.body.to_string().into_bytes(),
        media: None,
        headers: Vec::new(),
    };
    let response = target.send(&valid).await.unwrap();
    // Referenced ids need not exist.
    let is_name = |path: &String| path.ends_with("_id") || path == "nonce";
    let is_valid = match target.format {
        BodyFormat::Json(_) if target.route.path.starts_with("/3ds") => true,
        BodyFormat::Json(_) => {
            let rejected = response.body["errors"].as_object();
            rejected.is_none_or(|rejected| rejected.keys().all(is_name))
        }
        BodyFormat::Form(_) | BodyFormat::Nothing => true,
    };
    let case = format!("{} {}", target.route, target.body);
    let rejected = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    assert!(
        is_valid && !is_failure(response.status),
        "{case}: {}",
        response.body
    );
    let needs_session = target.route.path.starts_with("/3ds");
    assert!(
        needs_session || !rejected.contains(&response.status),
        "{case}: {}",
        response.body
    );
}

/// A client of another tenant that creates, reads, searches and deletes tokens and checks every response.
struct ConcurrentClient {
    is_stopped: Arc<AtomicBool>,
    task: JoinSet<Vec<Duration>>,
}

impl ConcurrentClient {
    fn start(client: Client) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_stopped);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut times = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let begun = Instant::now();
                exercise(&client, times.len()).await;
                times.push(begun.elapsed());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            times
        });
        Self { is_stopped, task }
    }

    async fn stop(self) -> (usize, Vec<Duration>) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let times = self.task.join_all().await.concat();
        (times.len(), times)
    }
}

async fn exercise(client: &Client, number: usize) {
    let data = json!({"secret": format!("secret {number}"), "more": [number]});
    let new = json!({"type": "token", "data": data, "search_indexes": ["{{ data.secret }}"]});
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/tokens/{}", created.id());
    assert_eq!(client.get(&path).await.body["data"], data);
    let query = json!({ "query": format!("data:\"secret {number}\"") });
    let found = client.post("/v2/tokens/search", query).await;
    assert_eq!(found.items().len(), 1, "{}", found.body);
    assert_eq!(found.items()[0]["data"], data);
    assert_eq!(client.delete(&path).await.status, StatusCode::NO_CONTENT);
}

/// Counts panics on all threads from now on.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::Relaxed);
        before(info);
    }));
    panics
}

/// A random valid card number, which no response contains by chance.
fn card_number(chance: &mut SeededRng) -> String {
    let mut digits = "41".to_owned();
    while digits.len() < 15 {
        digits.push_str(&chance.below(10).to_string());
    }
    let doubled = |(index, byte): (usize, u8)| {
        let digit = usize::from(byte - b'0') * (2 - index % 2);
        digit / 10 + digit % 10
    };
    let sum: usize = digits.bytes().enumerate().map(doubled).sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 1000).min(times.len() - 1)];
    format!("p50 {:?}, p99 {:?}, max {:?}", at(500), at(990), at(1000))
}
