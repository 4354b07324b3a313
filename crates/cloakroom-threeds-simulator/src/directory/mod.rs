//! The directory server: takes PReq and AReq over mutual TLS, checks them, and answers.

mod answer;
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

use crate::ranges::{Download, Wire};
use crate::transaction::{last_four, new_id};
use crate::trouble::{Effect, hang_up};
use crate::wire::{self, Fields, put, refusal, text};
use crate::world::{Seen, World};
use crate::{behaviour, networks};

const BODY_BYTES_MAX: usize = 128 * 1024;
/// Longer than a 3DS Server waits for an ARes.
const SILENCE: Duration = Duration::from_secs(20);

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is no part of the documented API"
)]
pub(crate) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/ds/{network}", post(receive))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(world)
}

async fn receive(
    State(world): State<Arc<World>>,
    Path(network): Path<String>,
    body: Bytes,
) -> Response {
    let Some(network) = networks::known(&network) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let fields = wire::object(&body);
    let kind = fields
        .as_ref()
        .and_then(|fields| text(fields, "messageType"));
    let kind = kind
        .filter(|kind| ["PReq", "AReq", "Erro"].contains(kind))
        .unwrap_or("unknown");
    world.count_received(kind);
    let trouble = world.troubles().take(kind, network);
    let trouble = match trouble {
        Some(trouble) => match trouble.happen().await {
            Effect::Response(response) => return response,
            Effect::Erro(code) => Some(refusal(&code, "as it was asked for")),
        },
        None => None,
    };
    let expected = [MessageKind::PReq, MessageKind::AReq];
    let answered = match (
        trouble,
        cloakroom_emv3ds::read(&body, &expected, &Version::ALL),
    ) {
        (Some(fault), _) | (None, Err(fault)) => Reply::Refused(fault),
        // An Erro ends an exchange: there is nothing to say to it.
        (None, Ok(Message::Erro(_))) => return StatusCode::OK.into_response(),
        (None, Ok(Message::PReq(_))) => prepare(&world, network, fields.as_ref()),
        (None, Ok(_)) => return authenticate(&world, network, fields.unwrap_or_default()).await,
    };
    respond(&world, answered, fields.as_ref())
}

/// How a request is answered.
pub(crate) enum Reply {
    Message(MessageKind, Fields),
    Refused(Fault),
    /// Nothing, and no connection either.
    Silence,
}

/// The whole life of an AReq. It is remembered before it is checked: tests ask what arrived.
async fn authenticate(world: &Arc<World>, network: &'static str, fields: Fields) -> Response {
    let reply = authenticated(world, network, &fields).await;
    if matches!(reply, Reply::Silence) {
        sleep(SILENCE).await;
        return hang_up();
    }
    respond(world, reply, Some(&fields))
}

/// Checks and answers an AReq, also one that came through a vendor's interface.
pub(crate) async fn authenticated(
    world: &Arc<World>,
    network: &'static str,
    fields: &Fields,
) -> Reply {
    let id = text(fields, "threeDSServerTransID").unwrap_or_default();
    let was_answered = remember(world, network, id, fields);
    let extra = behaviour::extra(text(fields, "purchaseAmount"));
    sleep(extra.delay).await;
    let checked = {
        let ranges = world.ranges();
        match ranges.get(network) {
            Some(ranges) => checks::check(fields, ranges, was_answered),
            None => Err(refusal("403", "no ranges")),
        }
    };
    if let Err(fault) = checked {
        return Reply::Refused(fault);
    }
    if let Some(code) = extra.erro {
        return Reply::Refused(refusal(code, "as the amount asks for"));
    }
    answer::answer(world, network, fields, extra)
}

/// Whether the transaction got an ARes before.
fn remember(world: &World, network: &'static str, id: &str, fields: &Fields) -> bool {
    let mut request = fields.clone();
    let number = text(fields, "acctNumber").unwrap_or_default();
    put(&mut request, "acctNumber", last_four(number));
    let mut memory = world.memory();
    let was_answered = memory
        .requests
        .get(id)
        .is_some_and(|seen| seen.transaction.is_some());
    if !was_answered {
        let seen = Seen {
            network,
            request,
            answer: None,
            transaction: None,
        };
        memory.requests.put(id, seen);
    }
    was_answered
}

/// The ranges that the 3DS Server does not know yet.
fn prepare(world: &World, network: &str, fields: Option<&Fields>) -> Reply {
    let get = |name| fields.and_then(|fields| text(fields, name));
    let version = get("messageVersion").unwrap_or_default();
    let wire = Wire {
        version,
        acs_url: &world.acs_url,
    };
    let ranges = world.ranges();
    let Some(ranges) = ranges.get(network) else {
        return Reply::Refused(refusal("403", "no ranges"));
    };
    let (serial, elements) = match ranges.download(get("serialNum"), &wire) {
        Download::UnknownSerial => return Reply::Refused(refusal("307", "serialNum")),
        Download::Elements { serial, elements } => (serial, elements),
    };
    let mut answer = Fields::new();
    put(&mut answer, "messageType", "PRes");
    put(&mut answer, "messageVersion", version);
    put(
        &mut answer,
        "threeDSServerTransID",
        get("threeDSServerTransID").unwrap_or_default(),
    );
    put(&mut answer, "dsTransID", new_id());
    if version == "2.3.1" {
        put(
            &mut answer,
            "dsProtocolVersions",
            json!(["2.1.0", "2.2.0", "2.3.1"]),
        );
    } else {
        put(&mut answer, "dsStartProtocolVersion", "2.1.0");
        put(&mut answer, "dsEndProtocolVersion", "2.3.1");
    }
    put(&mut answer, "serialNum", serial);
    if !elements.is_empty() {
        put(&mut answer, "cardRangeData", elements);
    }
    Reply::Message(MessageKind::PRes, answer)
}

fn respond(world: &World, reply: Reply, request: Option<&Fields>) -> Response {
    let (kind, body) = body(reply, request);
    world.count_sent(kind);
    let header = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (header, body).into_response()
}

/// The text of an answer, and which kind of message it is.
pub(crate) fn body(reply: Reply, request: Option<&Fields>) -> (&'static str, String) {
    let fault = match reply {
        Reply::Message(kind, fields) => match wire::checked(kind, &fields) {
            Ok(text) => return (kind.as_str(), text),
            Err(fault) => {
                let detail = format!("the simulator's answer is wrong: {fault}");
                refusal("404", detail)
            }
        },
        Reply::Refused(fault) => fault,
        Reply::Silence => refusal("402", "nothing came in time"),
    };
    let erro = wire::erro(fault, Component::D, request);
    ("Erro", Value::Object(erro).to_string())
}
