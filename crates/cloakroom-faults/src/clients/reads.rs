//! Reads of a client, compared with the history.

use std::sync::atomic::Ordering;

use serde_json::Value;

use super::api::{ApiRequest, ApiResponse};
use super::client::Client;
use super::stats::Invariant;
use crate::history::{Entry, State, parse_data};

/// The catalog endpoint with the smallest response.
const CATALOG: &str = "/orchestration/connection_formulas?size=1";

impl Client {
    /// Reads one of its tokens and compares it with the history.
    pub(crate) async fn read(&self, number: usize, reveals: bool) {
        let entry = self.workload.history.entry(number);
        let Some(id) = entry.id else {
            return;
        };
        let stats = &self.workload.stats;
        stats.tried.fetch_add(1, Ordering::Relaxed);
        let path = format!("/tokens/{id}");
        let key = match reveals {
            true => &self.workload.keys.reveal,
            false => &self.workload.keys.write,
        };
        let read = self.workload.reads.fetch_add(1, Ordering::Relaxed);
        let trace = self.workload.trace(read);
        let mut request = ApiRequest::get(&path, key);
        request.trace = Some(&trace);
        match self.workload.send(request).await {
            Ok(response) if matches!(response.status, 200 | 404) => {
                stats.record_read();
                if reveals && response.status == 200 {
                    self.workload.record_revealed(read);
                }
                self.compare(number, &entry, &response, reveals);
            }
            result => {
                stats.failed.fetch_add(1, Ordering::Relaxed);
                self.workload.expect_retryable(result, "a read");
            }
        }
    }

    fn compare(&self, number: usize, entry: &Entry, response: &ApiResponse, reveals: bool) {
        let stats = &self.workload.stats;
        if response.status == 404 {
            if entry.must_exist() {
                stats.violation(Invariant::Lost, format!("token {number} was not found"));
            }
            return;
        }
        if entry.must_not_exist() {
            stats.violation(
                Invariant::Resurrected,
                format!("token {number} was found after its deletion"),
            );
            return;
        }
        let found = match reveals {
            true => response
                .body
                .get("data")
                .and_then(Value::as_str)
                .and_then(parse_data),
            false => response
                .body
                .pointer("/metadata/revision")
                .and_then(Value::as_str)
                .and_then(|revision| Some((number, revision.parse().ok()?))),
        };
        let is_right = found.is_some_and(|(found, revision)| {
            found == number && entry.may_have_state(State::Present(revision))
        });
        if !is_right {
            let what = format!("token {number} is {found:?}, expected {entry:?}");
            stats.violation(Invariant::Wrong, what);
        }
    }

    /// Reads the catalog, which belongs to no tenant and can be served by a standby.
    pub(crate) async fn read_catalog(&self) {
        let workload = &self.workload;
        let request = ApiRequest::get(CATALOG, &workload.keys.catalog);
        match workload.send(request).await {
            Ok(response) if response.status == 200 => workload.stats.record_catalog_read(),
            result => workload.expect_retryable(result, "the catalog"),
        }
    }
}
