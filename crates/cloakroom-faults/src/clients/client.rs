//! One client: creates, changes, deletes and reads tokens of its own, and writes down what it is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Load;
use super::api::{Answer, Question};
use super::tally::Rule;
use crate::ledger::{Entry, State, data, read_data};
use crate::sabotage::Sabotage;

/// The shortest answer there is of the catalog.
const CATALOG: &str = "/orchestration/connection_formulas?size=1";
/// Containers that the tokens of a part are spread over, so that the checker can list them side by side.
pub(crate) const SHARDS: usize = 8;

const PAUSE: Duration = Duration::from_millis(250);

/// What became of a request that was sent until it was answered, or given up.
enum Outcome {
    Done(Answer),
    /// The first attempt was refused, which says that nothing happened.
    Refused(Answer),
    Unknown,
}

/// A request that changes something.
struct Write<'a> {
    key: &'a str,
    method: Method,
    path: &'a str,
    body: Option<Value>,
    idempotency_key: Option<String>,
    /// Whether it is sent again until there is an answer.
    persists: bool,
}

/// How a token comes to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is asked for until it is there.
    Persistent,
    /// It is asked for once, and without a key.
    Once,
    /// From an intent, which gives one token and no more.
    FromIntent,
}

fn first_data(number: usize) -> Value {
    json!({"type": "token", "data": data(number, 0)})
}

pub(crate) fn container(part: u16, shard: usize) -> String {
    format!("/part-{part}/shard-{shard}/")
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) load: Arc<Load>,
}

impl Client {
    /// Makes a token, and says which number it has in the ledger.
    pub(crate) async fn create(&self, way: Way) -> Option<usize> {
        let number = self.load.ledger.open(self.load.part);
        let mut body = match way {
            Way::Persistent | Way::Once => first_data(number),
            Way::FromIntent => json!({"token_intent_id": self.intend(number).await?}),
        };
        body["containers"] = json!([container(self.load.part, number % SHARDS)]);
        body["metadata"] = json!({"revision": "0"});
        self.load.ledger.try_for(number, State::Present(0));
        let persists = way != Way::Once;
        let write = Write {
            key: &self.load.keys.writing,
            method: Method::POST,
            path: "/tokens",
            body: Some(body.clone()),
            idempotency_key: persists.then(|| format!("create-{number}")),
            persists,
        };
        let outcome = self.write(write).await;
        if let (Outcome::Unknown, Some(Sabotage::FalseAcknowledgement)) =
            (&outcome, self.load.sabotage)
        {
            self.acknowledge(number, State::Present(0));
        }
        let (Outcome::Done(answer) | Outcome::Refused(answer)) = outcome else {
            return None;
        };
        let id = answer.body.get("id").and_then(Value::as_str);
        let id = id.and_then(|id| id.parse::<Uuid>().ok());
        let ledger = &self.load.ledger;
        match (answer.status, id) {
            (201, Some(id)) => {
                ledger.acknowledge(number, State::Present(0), Some(id));
                self.load.tally.wrote();
                if way == Way::FromIntent {
                    self.use_again(number, body).await;
                }
                Some(number)
            }
            (status, _) => {
                let rule = match (way, status) {
                    (Way::FromIntent, 400) => Rule::Lost,
                    _ => Rule::Wrong,
                };
                let what = format!("creating {number} was answered with {status}");
                self.load.tally.violation(rule, what);
                None
            }
        }
    }

    /// Makes an intent that a token is to come from.
    async fn intend(&self, number: usize) -> Option<String> {
        let write = Write {
            key: &self.load.keys.intending,
            method: Method::POST,
            path: "/token-intents",
            body: Some(first_data(number)),
            idempotency_key: Some(format!("intend-{number}")),
            persists: true,
        };
        let (Outcome::Done(answer) | Outcome::Refused(answer)) = self.write(write).await else {
            return None;
        };
        let id = answer.body.get("id").and_then(Value::as_str);
        match (answer.status, id) {
            (201, Some(id)) => {
                self.load.tally.wrote();
                Some(id.to_owned())
            }
            (status, _) => {
                let what = format!("the intent of {number} was answered with {status}");
                self.load.tally.violation(Rule::Wrong, what);
                None
            }
        }
    }

    /// Asks for another token of an intent that has given its one.
    async fn use_again(&self, number: usize, body: Value) {
        let load = &self.load;
        load.tally.tried.fetch_add(1, Ordering::Relaxed);
        let question = Question {
            method: Method::POST,
            path: "/tokens",
            key: &load.keys.writing,
            body: Some(body),
            idempotency_key: None,
            trace: None,
        };
        match load.ask(question).await {
            Ok(answer) if answer.status == 400 => {}
            Ok(answer) if answer.status == 201 => {
                let what = format!("the intent of {number} gave a second token");
                load.tally.violation(Rule::Doubled, what);
            }
            answered => {
                load.tally.failed.fetch_add(1, Ordering::Relaxed);
                load.expect_retriable(answered, "a used intent");
            }
        }
    }

    /// Changes the data; says whether the token may be used further.
    pub(crate) async fn change(&self, number: usize) -> bool {
        let entry = self.load.ledger.entry(number);
        let (Some(id), State::Present(revision)) = (entry.id, entry.acknowledged) else {
            return false;
        };
        let next = revision + 1;
        self.load.ledger.try_for(number, State::Present(next));
        let write = Write {
            key: &self.load.keys.writing,
            method: Method::PATCH,
            path: &format!("/tokens/{id}"),
            body: Some(json!({
                "data": data(number, next),
                "metadata": {"revision": next.to_string()},
            })),
            idempotency_key: Some(format!("change-{number}-{next}")),
            persists: true,
        };
        match self.write(write).await {
            Outcome::Done(answer) if answer.status == 200 => {
                self.acknowledge(number, State::Present(next));
                true
            }
            Outcome::Done(answer) | Outcome::Refused(answer) => {
                self.refused(number, &answer);
                false
            }
            Outcome::Unknown => false,
        }
    }

    pub(crate) async fn delete(&self, number: usize) {
        let Some(id) = self.load.ledger.entry(number).id else {
            return;
        };
        self.load.ledger.try_for(number, State::Deleted);
        let write = Write {
            key: &self.load.keys.writing,
            method: Method::DELETE,
            path: &format!("/tokens/{id}"),
            body: None,
            idempotency_key: None,
            persists: true,
        };
        match self.write(write).await {
            // After an attempt without an answer, 404 says that the attempt was done.
            Outcome::Done(answer) if matches!(answer.status, 204 | 404) => {
                self.acknowledge(number, State::Deleted);
            }
            Outcome::Done(answer) | Outcome::Refused(answer) => self.refused(number, &answer),
            Outcome::Unknown => {}
        }
    }

    fn acknowledge(&self, number: usize, state: State) {
        self.load.ledger.acknowledge(number, state, None);
        self.load.tally.wrote();
    }

    fn refused(&self, number: usize, answer: &Answer) {
        let rule = match answer.status {
            404 => Rule::Lost,
            _ => Rule::Wrong,
        };
        let what = format!("changing {number} was answered with {}", answer.status);
        self.load.tally.violation(rule, what);
    }

    /// Reads a token of its own, and compares what it sees with what it knows.
    pub(crate) async fn read(&self, number: usize, reveals: bool) {
        let entry = self.load.ledger.entry(number);
        let Some(id) = entry.id else {
            return;
        };
        let tally = &self.load.tally;
        tally.tried.fetch_add(1, Ordering::Relaxed);
        let path = format!("/tokens/{id}");
        let key = match reveals {
            true => &self.load.keys.revealing,
            false => &self.load.keys.writing,
        };
        let read = self.load.reads.fetch_add(1, Ordering::Relaxed);
        let trace = self.load.trace(read);
        let mut question = Question::get(&path, key);
        question.trace = Some(&trace);
        match self.load.ask(question).await {
            Ok(answer) if matches!(answer.status, 200 | 404) => {
                tally.read();
                if reveals && answer.status == 200 {
                    self.load.revealed(read);
                }
                self.compare(number, &entry, &answer, reveals);
            }
            answered => {
                tally.failed.fetch_add(1, Ordering::Relaxed);
                self.load.expect_retriable(answered, "a read");
            }
        }
    }

    fn compare(&self, number: usize, entry: &Entry, answer: &Answer, reveals: bool) {
        let tally = &self.load.tally;
        if answer.status == 404 {
            if entry.must_exist() {
                tally.violation(Rule::Lost, format!("{number} was answered with 404"));
            }
            return;
        }
        if entry.must_be_gone() {
            tally.violation(Rule::Resurrected, format!("{number} was answered"));
            return;
        }
        let seen = match reveals {
            true => answer
                .body
                .get("data")
                .and_then(Value::as_str)
                .and_then(read_data),
            false => answer
                .body
                .pointer("/metadata/revision")
                .and_then(Value::as_str)
                .and_then(|revision| Some((number, revision.parse().ok()?))),
        };
        let is_right = seen.is_some_and(|(seen, revision)| {
            seen == number && entry.may_be(State::Present(revision))
        });
        if !is_right {
            let what = format!("{number} is {seen:?}, may be {entry:?}");
            tally.violation(Rule::Wrong, what);
        }
    }

    /// Asks for what is no tenant's own.
    pub(crate) async fn look_up(&self) {
        let load = &self.load;
        let question = Question::get(CATALOG, &load.keys.catalog);
        match load.ask(question).await {
            Ok(answer) if answer.status == 200 => load.tally.looked_up(),
            answered => load.expect_retriable(answered, "the catalog"),
        }
    }

    /// Sends a write, again and again if it is to persist, until there is an answer that says something.
    async fn write(&self, write: Write<'_>) -> Outcome {
        let load = &self.load;
        let key = match load.sabotage {
            Some(Sabotage::RetriesWithoutKey) => None,
            _ => write.idempotency_key.as_deref(),
        };
        let mut is_first = true;
        loop {
            load.tally.tried.fetch_add(1, Ordering::Relaxed);
            let question = Question {
                method: write.method.clone(),
                path: write.path,
                key: write.key,
                body: write.body.clone(),
                idempotency_key: key,
                trace: None,
            };
            let answered = load.ask(question).await;
            match answered {
                Ok(answer) if is_final(answer.status) => {
                    return match answer.status {
                        404 if is_first => Outcome::Refused(answer),
                        _ => Outcome::Done(answer),
                    };
                }
                answered => {
                    load.tally.failed.fetch_add(1, Ordering::Relaxed);
                    load.expect_retriable(answered, "a write");
                }
            }
            is_first = false;
            let invents = load.sabotage == Some(Sabotage::FalseAcknowledgement);
            if !write.persists || load.is_given_up() || invents {
                return Outcome::Unknown;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether an answer says what became of the request. 409 says that somebody else is at it.
fn is_final(status: u16) -> bool {
    !matches!(status, 409 | 429 | 500..)
}

/// What a client may be answered when something is broken.
pub(crate) fn is_retriable(answered: &Result<Answer>) -> bool {
    match answered {
        Ok(answer) => matches!(answer.status, 409 | 429 | 502 | 503 | 504),
        Err(_) => true,
    }
}
