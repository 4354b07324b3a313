//! Requests that leave the vault: proxied requests, and writes whose events a webhook receives.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::api::ApiRequest;
use super::client::{Client, Outcome, WriteRequest};
use super::stats::Invariant;
use crate::receiver::{NAME, PORT};

/// Pause of the client whose writes have events; its rate is far below that of deliveries.
const EVENT_INTERVAL: Duration = Duration::from_millis(25);

/// What clients know to have left the vault, or to be about to.
#[derive(Default)]
pub(crate) struct OutboundHistory {
    /// Proxied requests with a response of the destination.
    pub(crate) proxied: Mutex<Vec<String>>,
    /// Event type and token of acknowledged writes.
    pub(crate) events: Mutex<Vec<(String, Uuid)>>,
}

impl OutboundHistory {
    fn add_proxied(&self, trace: String) {
        let mut proxied = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        proxied.push(trace);
    }

    fn add_event(&self, kind: &str, token: Uuid) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((kind.to_owned(), token));
    }
}

pub(crate) fn receiver_url() -> String {
    format!("https://{NAME}:{PORT}")
}

impl Client {
    /// Sends the data of one of its tokens to the receiver through the proxy, once.
    pub(crate) async fn proxy(&self, number: usize) {
        let workload = &self.workload;
        let Some(id) = workload.history.entry(number).id else {
            return;
        };
        workload.stats.tried.fetch_add(1, Ordering::Relaxed);
        let read = workload.reads.fetch_add(1, Ordering::Relaxed);
        let trace = workload.trace(read);
        let destination = receiver_url();
        let headers = [
            ("BT-PROXY-URL", destination.as_str()),
            ("X-Request", &trace),
        ];
        let request = ApiRequest {
            method: Method::POST,
            path: "/proxy/proxied",
            key: &workload.keys.proxy,
            body: Some(json!(format!("{{{{ {id} }}}}"))),
            idempotency_key: None,
            trace: Some(&trace),
            headers: &headers,
        };
        match workload.send(request).await {
            Ok(response) if response.status == 200 => {
                workload.stats.record_read();
                workload.outbound.add_proxied(trace);
            }
            // The client deletes tokens; another request of it may have deleted this one.
            Ok(response) if response.status == 400 => {
                if workload.history.entry(number).must_exist() {
                    let what = format!("token {number} was not found by the proxy");
                    workload.stats.violation(Invariant::Lost, what);
                }
            }
            // The proxy reports its own timeout as 408.
            Ok(response) if response.status == 408 => {
                workload.stats.failed.fetch_add(1, Ordering::Relaxed);
            }
            result => {
                workload.stats.failed.fetch_add(1, Ordering::Relaxed);
                workload.expect_retryable(result, "a proxied request");
            }
        }
    }

    /// Creates, updates and deletes tokens of the tenant with a webhook, until the workload stops.
    pub(crate) async fn write_with_events(&self) {
        let mut pause = tokio::time::interval(EVENT_INTERVAL);
        for number in 0.. {
            if self.workload.is_stopped() {
                return;
            }
            pause.tick().await;
            let Some(token) = self.create_with_event(number).await else {
                continue;
            };
            let update = json!({"metadata": {"number": number.to_string()}});
            self.write_with_event(token, Some(update)).await;
            if number % 2 == 0 {
                self.write_with_event(token, None).await;
            }
        }
    }

    async fn create_with_event(&self, number: u64) -> Option<Uuid> {
        let part = self.workload.part;
        let write = WriteRequest {
            key: &self.workload.keys.events,
            method: Method::POST,
            path: "/tokens",
            body: Some(json!({"type": "token", "data": format!("event {part} {number}")})),
            idempotency_key: Some(format!("event-{part}-{number}")),
            retries: true,
        };
        let Outcome::Completed(response) = self.write(write).await else {
            return None;
        };
        let id = response.body.get("id").and_then(Value::as_str)?;
        let id = id.parse().ok().filter(|_| response.status == 201)?;
        self.workload.outbound.add_event("token.created", id);
        Some(id)
    }

    /// Updates a token, or deletes it if there is no update.
    async fn write_with_event(&self, token: Uuid, body: Option<Value>) {
        let (method, kind) = match body {
            Some(_) => (Method::PATCH, "token.updated"),
            None => (Method::DELETE, "token.deleted"),
        };
        let write = WriteRequest {
            key: &self.workload.keys.events,
            method,
            path: &format!("/tokens/{token}"),
            body,
            idempotency_key: Some(format!("{kind}-{token}")),
            retries: true,
        };
        if let Outcome::Completed(response) = self.write(write).await
            && matches!(response.status, 200 | 204)
        {
            self.workload.outbound.add_event(kind, token);
        }
    }
}
