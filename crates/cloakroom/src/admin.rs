//! Admin listener: liveness, readiness and metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cloakroom_platform::telemetry::{Telemetry, catalog};
use http::{StatusCode, header};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::measurements;
use crate::node::Node;

/// The routes of the admin listener. They are unauthenticated and expose no secrets. A node that waits for its root key
/// has no `node`.
#[expect(
    clippy::disallowed_methods,
    reason = "these routes are not part of the documented API"
)]
pub fn router(readiness: Readiness, telemetry: Telemetry, node: Option<Node>) -> Router {
    let sampled = readiness.clone();
    let metrics = async move || {
        measure(&sampled, node.as_ref());
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        ([(header::CONTENT_TYPE, kind)], telemetry.metrics_text())
    };
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route(
            "/readyz",
            get(async move || readiness_response(&readiness.snapshot())),
        )
        .route("/metrics", get(metrics))
}

/// Measures what is in memory, before metrics are read.
fn measure(readiness: &Readiness, node: Option<&Node>) {
    readiness.snapshot().measure();
    measurements::sample(node);
}

/// Sends the metrics to the collector, if one is configured, until it is dropped.
pub async fn export_metrics(readiness: Readiness, telemetry: Telemetry, node: Node) {
    let Some(period) = telemetry.export_interval() else {
        return;
    };
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        measure(&readiness, Some(&node));
        telemetry.export_metrics().await;
    }
}

/// Readiness of this node; shared by all components that run a check.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<RwLock<Snapshot>>);

/// The reason of a check that has not run yet.
const UNCHECKED: &str = "not checked yet";

/// State of the checks at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Snapshot {
    pub is_draining: bool,
    /// Each check, with its reason if it fails.
    pub checks: BTreeMap<&'static str, Result<(), String>>,
}

/// Logs that a check begins to fail or fails for another reason, and that it succeeds again.
fn log_transition(
    check: &'static str,
    before: Option<Result<(), String>>,
    now: Result<(), String>,
) {
    let former = before.and_then(Result::err);
    let is_first = former.as_deref() == Some(UNCHECKED);
    match (former, now) {
        // While a node starts, some checks fail for a moment.
        (_, Err(reason)) if is_first => tracing::info!(check, reason, "the node is not ready yet"),
        (Some(former), Err(reason)) if has_same_words(&former, &reason) => {}
        (_, Err(reason)) => tracing::error!(check, reason, "the node is not ready"),
        (Some(_), Ok(())) if !is_first => tracing::info!(check, "the check succeeds again"),
        (_, Ok(())) => {}
    }
}

/// Whether two reasons differ in numbers only, such as seconds.
fn has_same_words(one: &str, other: &str) -> bool {
    let words = |text: &str| text.replace(|it: char| it.is_ascii_digit(), "");
    words(one) == words(other)
}

impl Readiness {
    /// Starts unready: each check must report once.
    pub fn new(names: &[&'static str]) -> Self {
        let unchecked = |name: &&'static str| (*name, Err(UNCHECKED.to_owned()));
        let checks = names.iter().map(unchecked).collect();
        Self(Arc::new(RwLock::new(Snapshot {
            is_draining: false,
            checks,
        })))
    }

    /// Sets the outcome of a check. The reason is visible to every client of the admin listener.
    pub fn set(&self, name: &'static str, outcome: Result<(), String>) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.checks.insert(name, outcome.clone());
        drop(state);
        log_transition(name, before, outcome);
    }

    /// Makes the node unready permanently, because it is shutting down.
    pub fn drain(&self) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .is_draining = true;
    }

    pub fn snapshot(&self) -> Snapshot {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Snapshot {
    pub fn is_ready(&self) -> bool {
        !self.is_draining && self.checks.values().all(Result::is_ok)
    }

    fn measure(&self) {
        catalog::READY.set(f64::from(self.is_ready()));
        for (name, outcome) in &self.checks {
            catalog::READINESS_CHECK
                .with([*name])
                .set(f64::from(outcome.is_ok()));
        }
    }
}

fn readiness_response(snapshot: &Snapshot) -> Response {
    let mut checks: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, outcome) in &snapshot.checks {
        checks.insert(
            name,
            outcome.as_ref().map_or_else(String::as_str, |()| "ok"),
        );
    }
    if snapshot.is_draining {
        checks.insert("draining", "the node is about to stop");
    }
    let is_ready = snapshot.is_ready();
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({ "ready": is_ready, "checks": checks }).to_string();
    (
        status,
        [(header::CONTENT_TYPE, "application/json; charset=utf-8")],
        body,
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use http::Request;
    use metrics_exporter_prometheus::PrometheusBuilder;
    use tower::ServiceExt as _;

    use super::*;

    /// Telemetry that no other test writes to, with one metric.
    fn telemetry() -> Telemetry {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            catalog::PANICS.increment(1);
        });
        Telemetry::from_metrics(recorder.handle())
    }

    async fn get_path(readiness: &Readiness, path: &str) -> (u16, String) {
        let router = router(readiness.clone(), telemetry(), None);
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_follows_its_checks() {
        let readiness = Readiness::new(&["database", "keys"]);
        let body = |ready: bool, checks: &str| format!("{{\"ready\":{ready},\"checks\":{checks}}}");

        let initial = get_path(&readiness, "/readyz").await;
        readiness.set("database", Ok(()));
        readiness.set("keys", Err("the provider does not answer".to_owned()));
        let half = get_path(&readiness, "/readyz").await;
        readiness.set("keys", Ok(()));
        let ready = get_path(&readiness, "/readyz").await;
        readiness.drain();
        let draining = get_path(&readiness, "/readyz").await;

        let unheard = r#"{"database":"not checked yet","keys":"not checked yet"}"#;
        assert_eq!(initial, (503, body(false, unheard)));
        let broken = r#"{"database":"ok","keys":"the provider does not answer"}"#;
        assert_eq!(half, (503, body(false, broken)));
        assert_eq!(ready, (200, body(true, r#"{"database":"ok","keys":"ok"}"#)));
        let stopping = r#"{"database":"ok","draining":"the node is about to stop","keys":"ok"}"#;
        assert_eq!(draining, (503, body(false, stopping)));
    }

    #[tokio::test]
    async fn unready_nodes_are_alive() {
        let readiness = Readiness::new(&["database"]);
        readiness.drain();

        assert_eq!(
            get_path(&readiness, "/healthz").await,
            (200, "ok".to_owned())
        );
    }

    #[tokio::test]
    async fn metrics_are_served_as_text() {
        let readiness = Readiness::new(&[]);

        let (status, body) = get_path(&readiness, "/metrics").await;

        assert_eq!(status, 200);
        assert!(
            body.contains("# TYPE cloakroom_panics_total counter"),
            "{body}"
        );
    }
}
