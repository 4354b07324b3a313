//! What a test asks for: what arrived, other ranges, trouble, and results that are not right.

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

use crate::behaviour::Ending;
use crate::networks;
use crate::ranges::{Action, Method, Range, Ranges, Refusal};
use crate::results::{Outcome, compose};
use crate::trouble::Trouble;
use crate::wire::{self, Fields};
use crate::world::World;

const BODY_BYTES_MAX: usize = 64 * 1024;

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is no part of the documented API"
)]
pub(crate) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/control/messages", get(messages))
        .route("/control/transactions/{id}", get(transaction))
        .route("/control/transactions/{id}/result", post(send_result))
        .route("/control/ranges/{network}", get(ranges).post(change_ranges))
        .route("/control/ranges/{network}/bump", post(bump))
        .route("/control/ranges/{network}/forget", post(forget))
        .route("/control/trouble", post(plan_trouble).delete(clear_trouble))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(world)
}

type Answer = Result<Response, Problem>;

/// Why a control request is not done, in words.
struct Problem(StatusCode, String);

impl axum::response::IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self(StatusCode::CONFLICT, refusal.to_string())
    }
}

fn unknown(what: &str) -> Problem {
    Problem(StatusCode::NOT_FOUND, format!("no such {what}"))
}

fn answer(value: &Value) -> Response {
    let header = [(header::CONTENT_TYPE, "application/json")];
    (header, value.to_string()).into_response()
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem(StatusCode::BAD_REQUEST, error.to_string()))
}

/// How many messages of each kind were received or sent.
async fn messages(State(world): State<Arc<World>>) -> Response {
    answer(&json!(world.counts()))
}

/// The last AReq of a 3DS Server's transaction, and what became of it.
async fn transaction(State(world): State<Arc<World>>, Path(id): Path<String>) -> Answer {
    let memory = world.memory();
    let has_method = memory.methods.get(&id).is_some();
    let Some(seen) = memory.requests.get(&id) else {
        return match has_method {
            true => Ok(answer(&json!({"method_seen": true}))),
            false => Err(unknown("transaction")),
        };
    };
    let progress = seen.transaction.as_ref().map(|it| it.progress());
    Ok(answer(&json!({
        "network": seen.network,
        "method_seen": has_method,
        "areq": seen.request,
        "ares": seen.answer,
        "attempts": progress.as_ref().map(|it| it.attempts),
        "rreq": progress.as_ref().and_then(|it| it.result.as_ref()),
        "replies": progress.as_ref().map(|it| &it.replies),
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultRequest {
    /// Fields that differ from the RReq that was sent, or would be sent for a success.
    #[serde(default)]
    change: Fields,
    /// Whether the simulator shows its certificate.
    #[serde(default = "yes")]
    certificate: bool,
}

fn yes() -> bool {
    true
}

/// Sends an RReq again, as it was or altered, and tells what came back.
async fn send_result(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer {
    let asked: ResultRequest = read(&body)?;
    let seen = world.memory().requests.get(&id).cloned();
    let transaction = seen
        .and_then(|seen| seen.transaction)
        .ok_or_else(|| unknown("transaction"))?;
    let mut fields = {
        let progress = transaction.progress();
        let success = Outcome::of(Ending {
            status: "Y",
            reason: None,
        });
        let fresh = || compose(&transaction, success, progress.attempts);
        progress.result.clone().unwrap_or_else(fresh)
    };
    for (name, value) in asked.change {
        match value {
            Value::Null => fields.remove(&name),
            value => fields.insert(name, value),
        };
    }
    let text = wire::unchecked(&fields);
    let reply = world.send_result(&transaction, &text, asked.certificate);
    Ok(answer(&reply.await))
}

async fn ranges(State(world): State<Arc<World>>, Path(network): Path<String>) -> Answer {
    with_ranges(&world, &network, |_| Ok(()))
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
    /// Announce it even if it is impossible.
    #[serde(default)]
    pretend: bool,
}

async fn change_ranges(
    State(world): State<Arc<World>>,
    Path(network): Path<String>,
    body: Bytes,
) -> Answer {
    let asked: RangeChange = read(&body)?;
    let mut range = Range::new(&asked.start, &asked.end)?;
    range.acs_start = asked.acs_start.unwrap_or(range.acs_start);
    range.acs_end = asked.acs_end.unwrap_or(range.acs_end);
    range.method = asked.method.unwrap_or(range.method);
    with_ranges(&world, &network, |ranges| match asked.pretend {
        true => {
            ranges.pretend(asked.action, range);
            Ok(())
        }
        false => ranges.change(asked.action, range),
    })
}

async fn bump(State(world): State<Arc<World>>, Path(network): Path<String>) -> Answer {
    with_ranges(&world, &network, |ranges| {
        ranges.bump();
        Ok(())
    })
}

async fn forget(State(world): State<Arc<World>>, Path(network): Path<String>) -> Answer {
    with_ranges(&world, &network, |ranges| {
        ranges.forget();
        Ok(())
    })
}

/// Changes the ranges of a network, and tells the serial number that they have then.
fn with_ranges(
    world: &World,
    network: &str,
    change: impl FnOnce(&mut Ranges) -> Result<(), Refusal>,
) -> Answer {
    let network = networks::known(network).ok_or_else(|| unknown("network"))?;
    let mut ranges = world.ranges();
    let ranges = ranges.get_mut(network).ok_or_else(|| unknown("network"))?;
    change(ranges)?;
    Ok(answer(
        &json!({"serial": ranges.serial(), "count": ranges.len()}),
    ))
}

async fn plan_trouble(State(world): State<Arc<World>>, body: Bytes) -> Answer {
    let trouble: Trouble = read(&body)?;
    world.troubles().plan(trouble);
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn clear_trouble(State(world): State<Arc<World>>) -> Response {
    world.troubles().clear();
    StatusCode::NO_CONTENT.into_response()
}
