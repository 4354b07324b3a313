//! The DS: validates PReq and AReq, received over mutual TLS, and responds.

mod ares;
mod checks;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use cloakroom_emv3ds::{Component, Fault, Message, MessageKind, Version};
use http::{StatusCode, header};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::fault_injection::{Effect, close_connection};
use crate::ranges::{Download, RangeEncoder};
use crate::state::{ReceivedAreq, SharedState};
use crate::transaction::{last_four, new_id};
use crate::wire::{self, Fields, protocol_fault, put, text};
use crate::{behavior, networks};

const BODY_BYTES_MAX: usize = 128 * 1024;
/// Longer than a 3DS Server's ARes timeout.
const NO_RESPONSE_DELAY: Duration = Duration::from_secs(20);

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is not part of the documented API"
)]
pub(crate) fn router(state: Arc<SharedState>) -> Router {
    Router::new()
        .route("/ds/{network}", post(receive))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(state)
}

async fn receive(
    State(state): State<Arc<SharedState>>,
    Path(network): Path<String>,
    body: Bytes,
) -> Response {
    let Some(network) = networks::find(&network) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let fields = wire::parse_object(&body);
    let kind = fields
        .as_ref()
        .and_then(|fields| text(fields, "messageType"));
    let kind = kind
        .filter(|kind| ["PReq", "AReq", "Erro"].contains(kind))
        .unwrap_or("unknown");
    state.count_received(kind);
    let injected = state.injected_faults().take(kind, network);
    let injected = match injected {
        Some(injected) => match injected.apply().await {
            Effect::Response(response) => return response,
            Effect::Erro(code) => Some(protocol_fault(&code, "requested by fault injection")),
        },
        None => None,
    };
    let expected = [MessageKind::PReq, MessageKind::AReq];
    let reply = match (
        injected,
        cloakroom_emv3ds::read(&body, &expected, &Version::ALL),
    ) {
        (Some(fault), _) | (None, Err(fault)) => Reply::Erro(fault),
        // An Erro has no response.
        (None, Ok(Message::Erro(_))) => return StatusCode::OK.into_response(),
        (None, Ok(Message::PReq(_))) => handle_preq(&state, network, fields.as_ref()),
        (None, Ok(_)) => return handle_areq(&state, network, fields.unwrap_or_default()).await,
    };
    respond(&state, reply, fields.as_ref())
}

/// The response to a request.
pub(crate) enum Reply {
    Message(MessageKind, Fields),
    Erro(Fault),
    /// Closes the connection without a response.
    NoResponse,
}

/// Handles an AReq of the DS endpoint.
async fn handle_areq(state: &Arc<SharedState>, network: &'static str, fields: Fields) -> Response {
    let reply = process_areq(state, network, &fields).await;
    if matches!(reply, Reply::NoResponse) {
        sleep(NO_RESPONSE_DELAY).await;
        return close_connection();
    }
    respond(state, reply, Some(&fields))
}

/// Validates an AReq and builds the reply, for the DS and for the vendor interface. Records it before
/// validation, so that tests can inspect invalid requests.
pub(crate) async fn process_areq(
    state: &Arc<SharedState>,
    network: &'static str,
    fields: &Fields,
) -> Reply {
    let id = text(fields, "threeDSServerTransID").unwrap_or_default();
    let has_ares = record_areq(state, network, id, fields);
    let effects = behavior::amount_effects(text(fields, "purchaseAmount"));
    sleep(effects.delay).await;
    let checked = {
        let ranges = state.ranges();
        match ranges.get(network) {
            Some(ranges) => checks::check(fields, ranges, has_ares),
            None => Err(protocol_fault("403", "no ranges")),
        }
    };
    if let Err(fault) = checked {
        return Reply::Erro(fault);
    }
    if let Some(code) = effects.erro {
        return Reply::Erro(protocol_fault(code, "requested by the amount"));
    }
    ares::respond(state, network, fields, effects)
}

/// Records an AReq, unless its transaction already has an ARes. Returns whether it has.
fn record_areq(state: &SharedState, network: &'static str, id: &str, fields: &Fields) -> bool {
    let mut areq = fields.clone();
    let number = text(fields, "acctNumber").unwrap_or_default();
    put(&mut areq, "acctNumber", last_four(number));
    let mut store = state.store();
    let has_ares = store
        .requests
        .get(id)
        .is_some_and(|received| received.transaction.is_some());
    if !has_ares {
        let received = ReceivedAreq {
            network,
            areq,
            ares: None,
            transaction: None,
        };
        store.requests.put(id, received);
    }
    has_ares
}

/// Builds the PRes with all ranges, or with the changes since `serialNum`.
fn handle_preq(state: &SharedState, network: &str, fields: Option<&Fields>) -> Reply {
    let get = |name| fields.and_then(|fields| text(fields, name));
    let version = get("messageVersion").unwrap_or_default();
    let encoder = RangeEncoder {
        version,
        acs_url: &state.acs_url,
    };
    let ranges = state.ranges();
    let Some(ranges) = ranges.get(network) else {
        return Reply::Erro(protocol_fault("403", "no ranges"));
    };
    let (serial, elements) = match ranges.download(get("serialNum"), &encoder) {
        Download::UnknownSerial => return Reply::Erro(protocol_fault("307", "serialNum")),
        Download::Elements { serial, elements } => (serial, elements),
    };
    let mut pres = Fields::new();
    put(&mut pres, "messageType", "PRes");
    put(&mut pres, "messageVersion", version);
    put(
        &mut pres,
        "threeDSServerTransID",
        get("threeDSServerTransID").unwrap_or_default(),
    );
    put(&mut pres, "dsTransID", new_id());
    if version == "2.3.1" {
        put(
            &mut pres,
            "dsProtocolVersions",
            json!(["2.1.0", "2.2.0", "2.3.1"]),
        );
    } else {
        put(&mut pres, "dsStartProtocolVersion", "2.1.0");
        put(&mut pres, "dsEndProtocolVersion", "2.3.1");
    }
    put(&mut pres, "serialNum", serial);
    if !elements.is_empty() {
        put(&mut pres, "cardRangeData", elements);
    }
    Reply::Message(MessageKind::PRes, pres)
}

fn respond(state: &SharedState, reply: Reply, request: Option<&Fields>) -> Response {
    let (kind, body) = serialize_reply(reply, request);
    state.count_sent(kind);
    let header = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (header, body).into_response()
}

/// The type and JSON text of a reply.
pub(crate) fn serialize_reply(reply: Reply, request: Option<&Fields>) -> (&'static str, String) {
    let fault = match reply {
        Reply::Message(kind, fields) => match wire::serialize(kind, &fields) {
            Ok(text) => return (kind.as_str(), text),
            Err(fault) => {
                let detail = format!("the simulator built an invalid message: {fault}");
                protocol_fault("404", detail)
            }
        },
        Reply::Erro(fault) => fault,
        Reply::NoResponse => protocol_fault("402", "no response in time"),
    };
    let erro = wire::erro_fields(fault, Component::D, request);
    ("Erro", Value::Object(erro).to_string())
}
