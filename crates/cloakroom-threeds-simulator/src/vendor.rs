//! The interface of a certified 3DS Server vendor: three calls with an API key, backed by the same DS
//! and ACS. The vendor is the 3DS Server: it assigns transaction ids and stores results.

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
use crate::fault_injection::Effect;
use crate::networks;
use crate::ranges::RangeEncoder;
use crate::state::SharedState;
use crate::transaction::new_id;
use crate::wire::{self, Fields, protocol_fault, put, text};

/// The API key in the `APIKey` header.
pub const VENDOR_API_KEY: &str = "threeds-simulator";

/// Maximum time between `preauth` and `auth`.
const ID_LIFETIME: Duration = Duration::from_secs(80);
/// The vendor's timeout for a DS.
const DS_TIMEOUT: Duration = Duration::from_secs(10);
const BODY_BYTES_MAX: usize = 128 * 1024;
/// Results with this URL are stored for `postauth` and not sent.
const VENDOR_RESULTS_URL: &str = "https://127.0.0.1/vendor/results";

pub(crate) fn is_vendor_results_url(results_url: &str) -> bool {
    results_url == VENDOR_RESULTS_URL
}

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is not part of the documented API"
)]
pub(crate) fn router(state: Arc<SharedState>) -> Router {
    Router::new()
        .route("/vendor/preauth", post(preauth))
        .route("/vendor/auth", post(auth))
        .route("/vendor/postauth", post(postauth))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(state)
}

/// Returns the card range of a card, and a transaction id.
async fn preauth(
    State(state): State<Arc<SharedState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fields = match authorize(&state, "preauth", &headers, &body).await {
        Ok(fields) => fields,
        Err(rejection) => return rejection.respond(),
    };
    match find_range(&state, &fields) {
        Ok(found) => respond(&Value::Object(found)),
        Err(fault) => Rejection::Fault(fault, fields).respond(),
    }
}

fn find_range(state: &SharedState, fields: &Fields) -> Result<Fields, Fault> {
    let number = text(fields, "acctNumber").ok_or_else(|| protocol_fault("201", "acctNumber"))?;
    let network = match text(fields, "ds") {
        Some(name) => networks::find(name).ok_or_else(|| protocol_fault("203", "ds"))?,
        None => networks::for_number(number).ok_or_else(|| protocol_fault("305", "acctNumber"))?,
    };
    let encoder = RangeEncoder {
        version: "2.2.0",
        acs_url: &state.acs_url,
    };
    let mut found = {
        let ranges = state.ranges();
        let range = ranges.get(network).and_then(|ranges| ranges.find(number));
        let range = range.ok_or_else(|| protocol_fault("305", "acctNumber"))?;
        if range.acs_end < range.acs_start {
            return Err(protocol_fault("404", "the card range is invalid"));
        }
        encoder.capabilities(range)
    };
    let id = new_id();
    put(&mut found, "messageType", "CRD");
    put(&mut found, "scheme", network);
    put(&mut found, "threeDSServerTransID", id.as_str());
    put(&mut found, "dsStartProtocolVersion", "2.1.0");
    put(&mut found, "dsEndProtocolVersion", "2.3.1");
    let assigned = (Instant::now(), network);
    state.store().vendor_ids.put(&id, assigned);
    Ok(found)
}

/// Processes an AReq; adds the fields of the 3DS Server.
async fn auth(State(state): State<Arc<SharedState>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut fields = match authorize(&state, "auth", &headers, &body).await {
        Ok(fields) => fields,
        Err(rejection) => return rejection.respond(),
    };
    put(&mut fields, "messageType", "AReq");
    put(&mut fields, "threeDSServerRefNumber", "sim-vendor");
    put(&mut fields, "threeDSServerOperatorID", "sim-vendor");
    put(&mut fields, "threeDSServerURL", VENDOR_RESULTS_URL);
    let id = text(&fields, "threeDSServerTransID").unwrap_or_default();
    let assigned = state.store().vendor_ids.get(id).copied();
    let Some((_, network)) = assigned.filter(|(at, _)| at.elapsed() < ID_LIFETIME) else {
        return Rejection::Fault(protocol_fault("301", "threeDSServerTransID"), fields).respond();
    };
    let whole = wire::serialize_unchecked(&fields);
    let read = cloakroom_emv3ds::read(whole.as_bytes(), &[MessageKind::AReq], &Version::ALL);
    if let Err(fault) = read {
        return Rejection::Fault(fault, fields).respond();
    }
    let reply = match directory::process_areq(&state, network, &fields).await {
        Reply::NoResponse => {
            sleep(DS_TIMEOUT).await;
            Reply::Erro(protocol_fault(
                "405",
                "the directory server did not respond",
            ))
        }
        reply => reply,
    };
    let (_, body) = directory::serialize_reply(reply, Some(&fields));
    json_response(body)
}

/// Returns the result of a challenge, if available.
async fn postauth(
    State(state): State<Arc<SharedState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fields = match authorize(&state, "postauth", &headers, &body).await {
        Ok(fields) => fields,
        Err(rejection) => return rejection.respond(),
    };
    let id = text(&fields, "threeDSServerTransID").unwrap_or_default();
    let received = state.store().requests.get(id).cloned();
    let Some(transaction) = received.and_then(|received| received.transaction) else {
        return Rejection::Fault(protocol_fault("301", "threeDSServerTransID"), fields).respond();
    };
    let result = transaction.progress().result.clone();
    match result {
        Some(result) => respond(&Value::Object(result)),
        None => Rejection::Fault(
            protocol_fault("305", "the result is not available yet"),
            fields,
        )
        .respond(),
    }
}

enum Rejection {
    InvalidKey,
    Injected(Box<Response>),
    /// About the request with these fields.
    Fault(Fault, Fields),
}

impl Rejection {
    fn respond(self) -> Response {
        match self {
            Self::InvalidKey => {
                let body = json!({"message": "the APIKey header is missing or invalid"});
                (StatusCode::UNAUTHORIZED, respond(&body)).into_response()
            }
            Self::Injected(response) => *response,
            Self::Fault(fault, fields) => {
                let erro = wire::erro_fields(fault, Component::S, Some(&fields));
                respond(&Value::Object(erro))
            }
        }
    }
}

/// Checks the API key, parses the request, and applies injected faults.
async fn authorize(
    state: &SharedState,
    call: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Fields, Rejection> {
    state.count_received(call);
    if headers
        .get("apikey")
        .is_none_or(|key| key != VENDOR_API_KEY)
    {
        return Err(Rejection::InvalidKey);
    }
    let invalid = || Rejection::Fault(protocol_fault("101", "not a JSON object"), Fields::new());
    let fields = wire::parse_object(body).ok_or_else(invalid)?;
    let injected = state.injected_faults().take(call, "vendor");
    match injected {
        None => Ok(fields),
        Some(injected) => Err(match injected.apply().await {
            Effect::Response(response) => Rejection::Injected(Box::new(response)),
            Effect::Erro(code) => Rejection::Fault(
                protocol_fault(&code, "requested by fault injection"),
                fields,
            ),
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
