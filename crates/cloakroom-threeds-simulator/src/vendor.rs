//! The face of a certified vendor: three calls with a key in a header, backed by the same networks
//! and the same issuer. Here the vendor is the 3DS Server, so it assigns ids and keeps results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use cloakroom_emv3ds::{Component, Fault, MessageKind, Version};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::directory::{self, Reply};
use crate::networks;
use crate::ranges::Wire;
use crate::transaction::new_id;
use crate::trouble::Effect;
use crate::wire::{self, Fields, put, refusal, text};
use crate::world::World;

/// What the header `APIKey` must hold.
pub const VENDOR_API_KEY: &str = "threeds-simulator";

/// How long an id may wait for its AReq.
const ID_LIFE: Duration = Duration::from_secs(80);
/// How long the vendor waits for a directory server.
const PATIENCE: Duration = Duration::from_secs(10);
const BODY_BYTES_MAX: usize = 128 * 1024;
/// Results with this address are kept for whoever asks, and sent nowhere.
const KEPT_HERE: &str = "https://127.0.0.1/vendor/results";

pub(crate) fn is_kept_here(results_url: &str) -> bool {
    results_url == KEPT_HERE
}

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is no part of the documented API"
)]
pub(crate) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/vendor/preauth", post(preauth))
        .route("/vendor/auth", post(auth))
        .route("/vendor/postauth", post(postauth))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(world)
}

/// Which range a card is in, and the id for its authentication.
async fn preauth(State(world): State<Arc<World>>, headers: HeaderMap, body: Bytes) -> Response {
    let fields = match admit(&world, "preauth", &headers, &body).await {
        Ok(fields) => fields,
        Err(refused) => return refused.respond(),
    };
    match look_up(&world, &fields) {
        Ok(found) => respond(&Value::Object(found)),
        Err(fault) => Refused::Fault(fault, fields).respond(),
    }
}

fn look_up(world: &World, fields: &Fields) -> Result<Fields, Fault> {
    let number = text(fields, "acctNumber").ok_or_else(|| refusal("201", "acctNumber"))?;
    let network = match text(fields, "ds") {
        Some(name) => networks::known(name).ok_or_else(|| refusal("203", "ds"))?,
        None => networks::of_number(number).ok_or_else(|| refusal("305", "acctNumber"))?,
    };
    let wire = Wire {
        version: "2.2.0",
        acs_url: &world.acs_url,
    };
    let mut found = {
        let ranges = world.ranges();
        let range = ranges.get(network).and_then(|ranges| ranges.find(number));
        let range = range.ok_or_else(|| refusal("305", "acctNumber"))?;
        if range.acs_end < range.acs_start {
            return Err(refusal("404", "the range of the card is broken"));
        }
        wire.describe(range)
    };
    let id = new_id();
    put(&mut found, "messageType", "CRD");
    put(&mut found, "scheme", network);
    put(&mut found, "threeDSServerTransID", id.as_str());
    put(&mut found, "dsStartProtocolVersion", "2.1.0");
    put(&mut found, "dsEndProtocolVersion", "2.3.1");
    let assigned = (Instant::now(), network);
    world.memory().assigned.put(&id, assigned);
    Ok(found)
}

/// An AReq without what only a 3DS Server knows, which is put in here.
async fn auth(State(world): State<Arc<World>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut fields = match admit(&world, "auth", &headers, &body).await {
        Ok(fields) => fields,
        Err(refused) => return refused.respond(),
    };
    put(&mut fields, "messageType", "AReq");
    put(&mut fields, "threeDSServerRefNumber", "sim-vendor");
    put(&mut fields, "threeDSServerOperatorID", "sim-vendor");
    put(&mut fields, "threeDSServerURL", KEPT_HERE);
    let id = text(&fields, "threeDSServerTransID").unwrap_or_default();
    let assigned = world.memory().assigned.get(id).copied();
    let Some((_, network)) = assigned.filter(|(at, _)| at.elapsed() < ID_LIFE) else {
        return Refused::Fault(refusal("301", "threeDSServerTransID"), fields).respond();
    };
    let whole = wire::unchecked(&fields);
    let read = cloakroom_emv3ds::read(whole.as_bytes(), &[MessageKind::AReq], &Version::ALL);
    if let Err(fault) = read {
        return Refused::Fault(fault, fields).respond();
    }
    let reply = match directory::authenticated(&world, network, &fields).await {
        Reply::Silence => {
            sleep(PATIENCE).await;
            Reply::Refused(refusal("405", "the directory server did not answer"))
        }
        reply => reply,
    };
    let (_, answer) = directory::body(reply, Some(&fields));
    json_response(answer)
}

/// The result of a challenge, as far as there is one.
async fn postauth(State(world): State<Arc<World>>, headers: HeaderMap, body: Bytes) -> Response {
    let fields = match admit(&world, "postauth", &headers, &body).await {
        Ok(fields) => fields,
        Err(refused) => return refused.respond(),
    };
    let id = text(&fields, "threeDSServerTransID").unwrap_or_default();
    let seen = world.memory().requests.get(id).cloned();
    let Some(transaction) = seen.and_then(|seen| seen.transaction) else {
        return Refused::Fault(refusal("301", "threeDSServerTransID"), fields).respond();
    };
    let result = transaction.progress().result.clone();
    match result {
        Some(result) => respond(&Value::Object(result)),
        None => Refused::Fault(refusal("305", "there is no result yet"), fields).respond(),
    }
}

enum Refused {
    Key,
    Trouble(Box<Response>),
    /// About the request with these fields.
    Fault(Fault, Fields),
}

impl Refused {
    fn respond(self) -> Response {
        match self {
            Self::Key => {
                let body = json!({"message": "the header APIKey holds no valid key"});
                (StatusCode::UNAUTHORIZED, respond(&body)).into_response()
            }
            Self::Trouble(response) => *response,
            Self::Fault(fault, fields) => {
                let erro = wire::erro(fault, Component::S, Some(&fields));
                respond(&Value::Object(erro))
            }
        }
    }
}

/// The fields of a request with a valid key, unless trouble was asked for.
async fn admit(
    world: &World,
    call: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Fields, Refused> {
    world.count_received(call);
    if headers
        .get("apikey")
        .is_none_or(|key| key != VENDOR_API_KEY)
    {
        return Err(Refused::Key);
    }
    let invalid = || Refused::Fault(refusal("101", "not a JSON object"), Fields::new());
    let fields = wire::object(body).ok_or_else(invalid)?;
    let trouble = world.troubles().take(call, "vendor");
    match trouble {
        None => Ok(fields),
        Some(trouble) => Err(match trouble.happen().await {
            Effect::Response(response) => Refused::Trouble(Box::new(response)),
            Effect::Erro(code) => Refused::Fault(refusal(&code, "as it was asked for"), fields),
        }),
    }
}

fn respond(value: &Value) -> Response {
    json_response(value.to_string())
}

fn json_response(body: String) -> Response {
    let header = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (header, body).into_response()
}
