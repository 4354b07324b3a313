//! Thousands of broken bodies on every route that takes one, beside somebody who behaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::json;
use tokio::task::JoinSet;

use super::breakage::{BREAKAGES, Breakage, Broken};
use super::target::{self, Takes, Target};
use crate::support::{Answer, Chance, Client, TestVault, number_or};

/// What each may take, in a build that is meant to be fast.
const TIME_MAX: Duration = Duration::from_millis(10);
/// A body that seems slow is sent again, because a neighbour of the machine makes any body slow.
const TRIES: usize = 4;

/// Whatever is wrong with a body, it is refused, quickly and without a word of what is in it, nothing
/// panics, and whoever asks beside it gets the right answers.
#[tokio::test]
async fn no_malformed_body_hurts_anybody() {
    let panics = count_panics();
    let vault = TestVault::start_patient().await;
    let mut chance = Chance::new();
    let count = number_or("CLOAKROOM_TEST_BODIES", 2_000);
    let canary = card_number(&mut chance);
    let targets = target::all(&vault, &canary).await;
    for target in &targets {
        check_good(target).await;
    }
    let takes_none = |target: &Target| target.takes == Takes::Nothing;
    let (others, targets): (Vec<_>, Vec<_>) = targets.into_iter().partition(takes_none);
    let neighbour = Neighbour::start(vault.revealing_client().await);

    let mut tally = Tally {
        canary: canary.clone(),
        ..Tally::default()
    };
    for index in 0..count {
        // Every way on every route in turn; what is left to chance is where and how. Routes that take no
        // body are asked less often.
        let among = if index % 10 == 0 { &others } else { &targets };
        let target = &among[index % among.len()];
        let breakage = &BREAKAGES[(index / among.len() + index) % BREAKAGES.len()];
        let broken = (breakage.break_it)(&mut chance, &target.body, &canary);
        tally.add(target, breakage, &broken).await;
    }
    let (asked, neighbours) = neighbour.stop().await;

    println!(
        "{count} bodies made of {}: {:?}",
        targets.len() + others.len(),
        tally.statuses
    );
    println!("each: {}", told(&mut tally.times));
    println!("the slowest: {}", tally.slowest);
    println!(
        "a neighbour, {asked} times: {}",
        told(&mut neighbours.clone())
    );
    assert_eq!(panics.load(Ordering::Relaxed), 0);
    assert!(
        tally.wrong.is_empty(),
        "{}: {:#?}",
        tally.wrong.len(),
        tally.wrong
    );
    assert!(asked > 0);
}

/// What came of all bodies.
#[derive(Default)]
struct Tally {
    statuses: BTreeMap<u16, usize>,
    times: Vec<Duration>,
    slowest: String,
    wrong: Vec<String>,
    /// What no refusal may tell.
    canary: String,
}

impl Tally {
    async fn add(&mut self, target: &Target, breakage: &Breakage, broken: &Broken) {
        let mut taken = Duration::MAX;
        for attempt in 0..TRIES {
            let begun = Instant::now();
            let answer = target.send(broken).await;
            taken = taken.min(begun.elapsed());
            if attempt == 0 {
                self.judge(target, breakage, broken, answer.as_ref());
            }
            if cfg!(debug_assertions) || taken <= TIME_MAX {
                break;
            }
        }
        let case = format!("{}, {}: {taken:?}", target.door, breakage.name);
        if self.times.iter().all(|other| *other < taken) {
            self.slowest.clone_from(&case);
        }
        self.times.push(taken);
        if !cfg!(debug_assertions) && taken > TIME_MAX {
            self.wrong.push(format!("slow: {case}"));
        }
    }

    fn judge(
        &mut self,
        target: &Target,
        breakage: &Breakage,
        broken: &Broken,
        answer: Option<&Answer>,
    ) {
        let Some(answer) = answer else {
            // Who sends more than is taken may find the connection closed before the answer was read.
            if broken.bytes.len() < 1024 * 1024 {
                self.wrong
                    .push(format!("{}, {}: no answer", target.door, breakage.name));
            }
            return;
        };
        *self.statuses.entry(answer.status.as_u16()).or_default() += 1;
        let text = String::from_utf8_lossy(&answer.bytes);
        let headers = format!("{:?}", answer.headers);
        let is_told = (text.contains(&self.canary) && !answer.status.is_success())
            || headers.contains(&self.canary);
        let is_taken = breakage.is_fatal
            && matches!(target.takes, Takes::Json(_))
            && answer.status.is_success();
        let faults = [
            (answer.status.is_server_error(), "a fault"),
            (is_told, "the canary is told"),
            (is_taken, "accepted"),
        ];
        for (_, fault) in faults.iter().filter(|(is_so, _)| *is_so) {
            let start = String::from_utf8_lossy(&broken.bytes[..broken.bytes.len().min(300)]);
            self.wrong.push(format!(
                "{}, {}: {fault}: {} {text} for {start}",
                target.door, breakage.name, answer.status
            ));
        }
    }
}

/// An unbroken body is understood, or nothing would be learned from breaking it.
async fn check_good(target: &Target) {
    let good = Broken {
        bytes: target.body.to_string().into_bytes(),
        media: None,
        headers: Vec::new(),
    };
    let answer = target.send(&good).await.unwrap();
    // What it names need not exist.
    let is_name = |path: &String| path.ends_with("_id") || path == "nonce";
    let is_understood = match target.takes {
        Takes::Json(_) if target.door.path.starts_with("/3ds") => true,
        Takes::Json(_) => {
            let refused = answer.body["errors"].as_object();
            refused.is_none_or(|refused| refused.keys().all(is_name))
        }
        Takes::Form(_) | Takes::Nothing => true,
    };
    let case = format!("{} {}", target.door, target.body);
    let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    assert!(
        is_understood && !answer.status.is_server_error(),
        "{case}: {}",
        answer.body
    );
    let needs_session = target.door.path.starts_with("/3ds");
    assert!(
        needs_session || !refused.contains(&answer.status),
        "{case}: {}",
        answer.body
    );
}

/// Somebody of another tenant who creates, reads, finds and deletes, and looks at every answer.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    asking: JoinSet<Vec<Duration>>,
}

impl Neighbour {
    fn start(client: Client) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let mut asking = JoinSet::new();
        asking.spawn(async move {
            let mut times = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let begun = Instant::now();
                ask(&client, times.len()).await;
                times.push(begun.elapsed());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            times
        });
        Self { is_over, asking }
    }

    async fn stop(self) -> (usize, Vec<Duration>) {
        self.is_over.store(true, Ordering::Relaxed);
        let times = self.asking.join_all().await.concat();
        (times.len(), times)
    }
}

async fn ask(client: &Client, number: usize) {
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

/// How many panics there were from now on, on any thread.
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

/// Sixteen digits that pass for a card number, and that nothing says by chance.
fn card_number(chance: &mut Chance) -> String {
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

fn told(times: &mut [Duration]) -> String {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 1000).min(times.len() - 1)];
    format!("p50 {:?}, p99 {:?}, max {:?}", at(500), at(990), at(1000))
}
