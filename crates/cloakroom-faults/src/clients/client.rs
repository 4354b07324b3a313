//! A client that creates, updates and deletes its own tokens and records the results in the history.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Workload;
use super::api::{ApiRequest, ApiResponse};
use super::stats::Invariant;
use crate::history::{State, data};
use crate::mutation::Mutation;

/// Containers that the tokens of a part are spread over, so that the checker can list them in parallel.
pub(crate) const SHARDS: usize = 8;

const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The outcome of a write after its retries.
pub(super) enum Outcome {
    Completed(ApiResponse),
    /// The first attempt was rejected, so the write had no effect.
    Rejected(ApiResponse),
    /// The write may or may not have been applied.
    Indeterminate,
}

/// A create, update or delete.
pub(super) struct WriteRequest<'a> {
    pub(super) key: &'a str,
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Option<Value>,
    pub(super) idempotency_key: Option<String>,
    /// Whether to retry until there is a final response.
    pub(super) retries: bool,
}

/// How a token is created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreateMode {
    /// With an idempotency key, retried until there is a final response.
    Retried,
    /// One attempt without an idempotency key.
    Once,
    /// From a token intent, which can be used once.
    FromIntent,
}

fn initial_token(number: usize) -> Value {
    json!({"type": "token", "data": data(number, 0)})
}

pub(crate) fn container(part: u16, shard: usize) -> String {
    format!("/part-{part}/shard-{shard}/")
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) workload: Arc<Workload>,
}

impl Client {
    /// Creates a token and returns its number in the history.
    pub(crate) async fn create(&self, mode: CreateMode) -> Option<usize> {
        let number = self.workload.history.open(self.workload.part);
        let mut body = match mode {
            CreateMode::Retried | CreateMode::Once => initial_token(number),
            CreateMode::FromIntent => json!({"token_intent_id": self.create_intent(number).await?}),
        };
        body["containers"] = json!([container(self.workload.part, number % SHARDS)]);
        body["metadata"] = json!({"revision": "0"});
        self.workload.history.invoke(number, State::Present(0));
        let retries = mode != CreateMode::Once;
        let write = WriteRequest {
            key: &self.workload.keys.write,
            method: Method::POST,
            path: "/tokens",
            body: Some(body.clone()),
            idempotency_key: retries.then(|| format!("create-{number}")),
            retries,
        };
        let outcome = self.write(write).await;
        if let (Outcome::Indeterminate, Some(Mutation::FalseAcknowledgement)) =
            (&outcome, self.workload.mutation)
        {
            self.acknowledge(number, State::Present(0));
        }
        let (Outcome::Completed(response) | Outcome::Rejected(response)) = outcome else {
            return None;
        };
        let id = response.body.get("id").and_then(Value::as_str);
        let id = id.and_then(|id| id.parse::<Uuid>().ok());
        let history = &self.workload.history;
        match (response.status, id) {
            (201, Some(id)) => {
                history.acknowledge(number, State::Present(0), Some(id));
                self.workload.stats.record_write();
                if mode == CreateMode::FromIntent {
                    self.reuse_intent(number, body).await;
                }
                Some(number)
            }
            (status, _) => {
                let invariant = match (mode, status) {
                    (CreateMode::FromIntent, 400) => Invariant::Lost,
                    _ => Invariant::Wrong,
                };
                let what = format!("creating token {number} returned {status}");
                self.workload.stats.violation(invariant, what);
                None
            }
        }
    }

    /// Creates a token intent.
    async fn create_intent(&self, number: usize) -> Option<String> {
        let write = WriteRequest {
            key: &self.workload.keys.create_intents,
            method: Method::POST,
            path: "/token-intents",
            body: Some(initial_token(number)),
            idempotency_key: Some(format!("intend-{number}")),
            retries: true,
        };
        let (Outcome::Completed(response) | Outcome::Rejected(response)) = self.write(write).await
        else {
            return None;
        };
        let id = response.body.get("id").and_then(Value::as_str);
        match (response.status, id) {
            (201, Some(id)) => {
                self.workload.stats.record_write();
                Some(id.to_owned())
            }
            (status, _) => {
                let what = format!("creating the intent of token {number} returned {status}");
                self.workload.stats.violation(Invariant::Wrong, what);
                None
            }
        }
    }

    /// Uses a token intent a second time, which must fail.
    async fn reuse_intent(&self, number: usize, body: Value) {
        let workload = &self.workload;
        workload.stats.tried.fetch_add(1, Ordering::Relaxed);
        let request = ApiRequest {
            method: Method::POST,
            path: "/tokens",
            key: &workload.keys.write,
            body: Some(body),
            idempotency_key: None,
            trace: None,
            headers: &[],
        };
        match workload.send(request).await {
            Ok(response) if response.status == 400 => {}
            Ok(response) if response.status == 201 => {
                let what = format!("the intent of token {number} created a second token");
                workload.stats.violation(Invariant::Doubled, what);
            }
            result => {
                workload.stats.failed.fetch_add(1, Ordering::Relaxed);
                workload.expect_retryable(result, "a used intent");
            }
        }
    }

    /// Updates the data. Returns whether the state of the token is known.
    pub(crate) async fn update(&self, number: usize) -> bool {
        let entry = self.workload.history.entry(number);
        let (Some(id), State::Present(revision)) = (entry.id, entry.acknowledged) else {
            return false;
        };
        let next = revision + 1;
        self.workload.history.invoke(number, State::Present(next));
        let write = WriteRequest {
            key: &self.workload.keys.write,
            method: Method::PATCH,
            path: &format!("/tokens/{id}"),
            body: Some(json!({
                "data": data(number, next),
                "metadata": {"revision": next.to_string()},
            })),
            idempotency_key: Some(format!("change-{number}-{next}")),
            retries: true,
        };
        match self.write(write).await {
            Outcome::Completed(response) if response.status == 200 => {
                self.acknowledge(number, State::Present(next));
                true
            }
            Outcome::Completed(response) | Outcome::Rejected(response) => {
                self.report_failed_write(number, &response);
                false
            }
            Outcome::Indeterminate => false,
        }
    }

    pub(crate) async fn delete(&self, number: usize) {
        let Some(id) = self.workload.history.entry(number).id else {
            return;
        };
        self.workload.history.invoke(number, State::Deleted);
        let write = WriteRequest {
            key: &self.workload.keys.write,
            method: Method::DELETE,
            path: &format!("/tokens/{id}"),
            body: None,
            idempotency_key: None,
            retries: true,
        };
        match self.write(write).await {
            // After an attempt without a response, 404 means that the attempt deleted the token.
            Outcome::Completed(response) if matches!(response.status, 204 | 404) => {
                self.acknowledge(number, State::Deleted);
            }
            Outcome::Completed(response) | Outcome::Rejected(response) => {
                self.report_failed_write(number, &response)
            }
            Outcome::Indeterminate => {}
        }
    }

    fn acknowledge(&self, number: usize, state: State) {
        self.workload.history.acknowledge(number, state, None);
        self.workload.stats.record_write();
    }

    fn report_failed_write(&self, number: usize, response: &ApiResponse) {
        let invariant = match response.status {
            404 => Invariant::Lost,
            _ => Invariant::Wrong,
        };
        let what = format!("writing token {number} returned {}", response.status);
        self.workload.stats.violation(invariant, what);
    }

    /// Sends a write, and retries it if requested until there is a final response.
    pub(super) async fn write(&self, write: WriteRequest<'_>) -> Outcome {
        let workload = &self.workload;
        let key = match workload.mutation {
            Some(Mutation::RetriesWithoutKey) => None,
            _ => write.idempotency_key.as_deref(),
        };
        let mut is_first = true;
        loop {
            workload.stats.tried.fetch_add(1, Ordering::Relaxed);
            let request = ApiRequest {
                method: write.method.clone(),
                path: write.path,
                key: write.key,
                body: write.body.clone(),
                idempotency_key: key,
                trace: None,
                headers: &[],
            };
            let result = workload.send(request).await;
            match result {
                Ok(response) if is_final(response.status) => {
                    return match response.status {
                        404 if is_first => Outcome::Rejected(response),
                        _ => Outcome::Completed(response),
                    };
                }
                result => {
                    workload.stats.failed.fetch_add(1, Ordering::Relaxed);
                    workload.expect_retryable(result, "a write");
                }
            }
            is_first = false;
            let invents_acknowledgement = workload.mutation == Some(Mutation::FalseAcknowledgement);
            if !write.retries || workload.has_given_up() || invents_acknowledgement {
                return Outcome::Indeterminate;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// Whether a status is final. 409 means that another attempt is in progress.
fn is_final(status: u16) -> bool {
    !matches!(status, 409 | 429 | 500..)
}

/// Whether a result is acceptable during a fault.
pub(crate) fn is_retryable(result: &Result<ApiResponse>) -> bool {
    match result {
        Ok(response) => matches!(response.status, 409 | 429 | 502 | 503 | 504),
        Err(_) => true,
    }
}
