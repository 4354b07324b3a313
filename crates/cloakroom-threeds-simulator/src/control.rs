//! Control endpoints for tests: received messages, card ranges, injected faults and altered results.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::{StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::behavior::FinalStatus;
use crate::fault_injection::InjectedFault;
use crate::networks;
use crate::ranges::{Action, Method, Range, RangeError, Ranges};
use crate::rreq::{Outcome, build_rreq};
use crate::state::SharedState;
use crate::wire::{self, Fields};

const BODY_BYTES_MAX: usize = 64 * 1024;

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is not part of the documented API"
)]
pub(crate) fn router(state: Arc<SharedState>) -> Router {
    Router::new()
        .route("/control/messages", get(messages))
        .route("/control/transactions/{id}", get(transaction))
        .route("/control/transactions/{id}/result", post(send_result))
        .route("/control/ranges/{network}", get(ranges).post(change_ranges))
        .route("/control/ranges/{network}/bump", post(bump))
        .route("/control/ranges/{network}/forget", post(invalidate_serials))
        .route("/control/trouble", post(inject_fault).delete(clear_faults))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(state)
}

type ControlResult = Result<Response, ControlError>;

/// A rejected control request, with its reason as text.
struct ControlError(StatusCode, String);

impl axum::response::IntoResponse for ControlError {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}

impl From<RangeError> for ControlError {
    fn from(error: RangeError) -> Self {
        Self(StatusCode::CONFLICT, error.to_string())
    }
}

fn not_found(what: &str) -> ControlError {
    ControlError(StatusCode::NOT_FOUND, format!("no such {what}"))
}

fn json_response(value: &Value) -> Response {
    let header = [(header::CONTENT_TYPE, "application/json")];
    (header, value.to_string()).into_response()
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ControlError> {
    serde_json::from_slice(body)
        .map_err(|error| ControlError(StatusCode::BAD_REQUEST, error.to_string()))
}

/// Counts of received and sent messages by type.
async fn messages(State(state): State<Arc<SharedState>>) -> Response {
    json_response(&json!(state.counts()))
}

/// The last AReq of a transaction, and its results.
async fn transaction(
    State(state): State<Arc<SharedState>>,
    Path(id): Path<String>,
) -> ControlResult {
    let store = state.store();
    let has_method = store.completed_methods.get(&id).is_some();
    let Some(received) = store.requests.get(&id) else {
        return match has_method {
            true => Ok(json_response(&json!({"method_seen": true}))),
            false => Err(not_found("transaction")),
        };
    };
    let progress = received.transaction.as_ref().map(|it| it.progress());
    Ok(json_response(&json!({
        "network": received.network,
        "method_seen": has_method,
        "areq": received.areq,
        "ares": received.ares,
        "attempts": progress.as_ref().map(|it| it.attempts),
        "rreq": progress.as_ref().and_then(|it| it.result.as_ref()),
        "replies": progress.as_ref().map(|it| &it.replies),
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultRequest {
    /// Fields to change in the RReq that was sent, or in that of a success.
    #[serde(default)]
    change: Fields,
    /// Whether to present the client certificate.
    #[serde(default = "yes")]
    certificate: bool,
}

fn yes() -> bool {
    true
}

/// Sends an RReq again, optionally altered, and returns the reply.
async fn send_result(
    State(state): State<Arc<SharedState>>,
    Path(id): Path<String>,
    body: Bytes,
) -> ControlResult {
    let request: ResultRequest = parse(&body)?;
    let received = state.store().requests.get(&id).cloned();
    let transaction = received
        .and_then(|received| received.transaction)
        .ok_or_else(|| not_found("transaction"))?;
    let mut fields = {
        let progress = transaction.progress();
        let success = Outcome::of(FinalStatus {
            status: "Y",
            reason: None,
        });
        let fresh = || build_rreq(&transaction, success, progress.attempts);
        progress.result.clone().unwrap_or_else(fresh)
    };
    for (name, value) in request.change {
        match value {
            Value::Null => fields.remove(&name),
            value => fields.insert(name, value),
        };
    }
    let text = wire::serialize_unchecked(&fields);
    let reply = state.send_result(&transaction, &text, request.certificate);
    Ok(json_response(&reply.await))
}

async fn ranges(
    State(state): State<Arc<SharedState>>,
    Path(network): Path<String>,
) -> ControlResult {
    update_ranges(&state, &network, |_| Ok(()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeChange {
    action: Action,
    start: String,
    end: String,
    acs_start: Option<String>,
    acs_end: Option<String>,
    method: Option<Method>,
    /// Announce the change even if it is invalid.
    #[serde(default)]
    pretend: bool,
}

async fn change_ranges(
    State(state): State<Arc<SharedState>>,
    Path(network): Path<String>,
    body: Bytes,
) -> ControlResult {
    let request: RangeChange = parse(&body)?;
    let mut range = Range::new(&request.start, &request.end)?;
    range.acs_start = request.acs_start.unwrap_or(range.acs_start);
    range.acs_end = request.acs_end.unwrap_or(range.acs_end);
    range.method = request.method.unwrap_or(range.method);
    update_ranges(&state, &network, |ranges| match request.pretend {
        true => {
            ranges.announce_invalid(request.action, range);
            Ok(())
        }
        false => ranges.change(request.action, range),
    })
}

async fn bump(State(state): State<Arc<SharedState>>, Path(network): Path<String>) -> ControlResult {
    update_ranges(&state, &network, |ranges| {
        ranges.bump();
        Ok(())
    })
}

async fn invalidate_serials(
    State(state): State<Arc<SharedState>>,
    Path(network): Path<String>,
) -> ControlResult {
    update_ranges(&state, &network, |ranges| {
        ranges.invalidate_serials();
        Ok(())
    })
}

/// Changes the ranges of a network, and returns their new serial number and count.
fn update_ranges(
    state: &SharedState,
    network: &str,
    change: impl FnOnce(&mut Ranges) -> Result<(), RangeError>,
) -> ControlResult {
    let network = networks::find(network).ok_or_else(|| not_found("network"))?;
    let mut ranges = state.ranges();
    let ranges = ranges
        .get_mut(network)
        .ok_or_else(|| not_found("network"))?;
    change(ranges)?;
    Ok(json_response(
        &json!({"serial": ranges.serial(), "count": ranges.len()}),
    ))
}

async fn inject_fault(State(state): State<Arc<SharedState>>, body: Bytes) -> ControlResult {
    let fault: InjectedFault = parse(&body)?;
    state.injected_faults().add(fault);
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn clear_faults(State(state): State<Arc<SharedState>>) -> Response {
    state.injected_faults().clear();
    StatusCode::NO_CONTENT.into_response()
}
