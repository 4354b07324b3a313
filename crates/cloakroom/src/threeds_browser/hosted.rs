//! The hosted page, and what it asks for while it runs.
//!
//! The key in its address proves the tenant. What proves that a call comes from the page that was served
//! last is its nonce.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use cloakroom_crypto::random_base58;
use cloakroom_emv3ds::{CReq, Message, base64url, write};
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;

use super::parameter;
use crate::access::{ApplicationKind, Permission, gate};
use crate::api::{Answer, ApiError, ClientAddr, PathId, Problem, Received, read_json};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::telemetry::TraceId;
use crate::threeds::{self, Error, Hosted, Session};
use crate::threeds_pages;
use crate::threeds_requests::DeviceInfo;
use crate::vault::Vault;

const NONCE_CHARACTERS: usize = 32;
/// A frame as large as the window.
const FULL_SIZE: &str = "05";

/// What every call of the page needs: who asks, and with which key.
type Request = (
    RawQuery,
    Option<Extension<TraceId>>,
    Option<Extension<ClientAddr>>,
);

/// Show the hosted page.
///
/// For sessions that were created with `callback_urls`. `apiKey` is a public key of the tenant.
#[utoipa::path(
    get,
    path = "/3ds/redirect/{id}",
    tag = "3-D Secure",
    params(
        ("id" = String, Path, description = "The session's id."),
        ("apiKey" = String, Query, description = "A public key of the tenant."),
    ),
    responses(
        (status = 200, description = "A page.", content_type = "text/html"),
        (status = 303, description = "The outcome is known: where the merchant wants the browser."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission, or the tenant 3-D Secure.",
         body = Problem),
        (status = 404, description = "No such session with a hosted page.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
pub(super) async fn show(
    State(vault): State<Vault>,
    PathId(id): PathId,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = caller(&vault, request).await?;
    let (session, hosted) = open(&vault, &caller, &id).await?;
    let nonce = random_base58(NONCE_CHARACTERS);
    let served = threeds::serve_page(&vault, &session, &nonce).await?;
    if served.is_none() {
        // Somebody comes back to a page that has done its work, or leaves a challenge.
        let session = threeds::await_result(&vault, session).await?;
        return Ok(Redirect::to(location(&session, &hosted)).into_response());
    }
    let base = vault.config.http.base_url.as_ref();
    let page = threeds_pages::hosted(&threeds_pages::Hosted {
        session: session.id,
        nonce,
        api: base.map_or_else(String::new, |base| base.as_str().to_owned()),
    });
    Ok(page.into_response())
}

/// What the page sends: its nonce, and in one call what it knows of the browser.
#[derive(Deserialize, ToSchema)]
struct HostedBody {
    #[schema(required)]
    nonce: Option<String>,
    device_info: Option<DeviceInfo>,
}

/// Tell the hosted page's browser.
#[utoipa::path(
    post,
    path = "/3ds/redirect/{id}/device",
    tag = "3-D Secure",
    params(
        ("id" = String, Path, description = "The session's id."),
        ("apiKey" = String, Query, description = "A public key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        (status = 200, description = "Where the issuer wants to see the browser, if it does."),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The call is not one of the page that was served last.",
         body = Problem),
        (status = 404, description = "No such session with a hosted page.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
pub(super) async fn tell_device(
    State(vault): State<Vault>,
    PathId(id): PathId,
    request: Request,
    headers: HeaderMap,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let address = request.2.as_ref().map(|Extension(client)| client.0);
    let caller = caller(&vault, request).await?;
    let body = read(received)?;
    let (session, _) = open_for_page(&vault, &caller, &id, &body).await?;
    let device = device(body.device_info, address, &headers);
    let session = threeds::tell_browser(&vault, &session, device).await?;
    Answer::ok(&method(&vault, &session))
}

fn device(told: Option<DeviceInfo>, address: Option<IpAddr>, headers: &HeaderMap) -> DeviceInfo {
    let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    let mut device = told.unwrap_or_default();
    let address = address.map(|address| address.to_string());
    device.complete(address, text(ACCEPT).as_deref());
    device.accept_language = text(ACCEPT_LANGUAGE);
    device
}

/// The form that lets the issuer see the browser; nothing if it does not want to.
fn method(vault: &Vault, session: &Session) -> serde_json::Value {
    let offer = session.offer(None);
    let base = vault.config.http.base_url.as_ref();
    let url = offer.and_then(|offer| threeds::method_url(&vault.config, offer));
    match (url, base) {
        (Some(url), Some(base)) => {
            let data = json!({
                "threeDSServerTransID": session.id,
                "threeDSMethodNotificationURL":
                    threeds::notification_url(base, session, "method-notification"),
            });
            let data = base64url::encode(data.to_string().as_bytes());
            json!({"method_url": url, "method_data": data})
        }
        _ => json!({}),
    }
}

/// Authenticate, as the hosted page.
#[utoipa::path(
    post,
    path = "/3ds/redirect/{id}/authenticate",
    tag = "3-D Secure",
    params(
        ("id" = String, Path, description = "The session's id."),
        ("apiKey" = String, Query, description = "A public key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        (status = 200, description = "The status, and how to challenge if that is it."),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The call is not one of the page that was served last.",
         body = Problem),
        (status = 404, description = "No such session with a hosted page.", body = Problem),
        (status = 409, description = "The session is authenticated already.", body = Problem),
        (status = 424, description = "The network or issuer could not be asked, or refused.",
         body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
pub(super) async fn ask(
    State(vault): State<Vault>,
    PathId(id): PathId,
    request: Request,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let caller = caller(&vault, request).await?;
    let body = read(received)?;
    let (session, hosted) = open_for_page(&vault, &caller, &id, &body).await?;
    let request = &hosted.authentication_request;
    let reply = Reply::none();
    let session = threeds::ask(&vault, &caller, session, request, &reply).await?;
    let status = session.status().map(|status| status.name());
    let challenge = challenge(&session);
    Answer::ok(&match challenge {
        Some((acs_url, creq)) => json!({"status": status, "acs_url": acs_url, "creq": creq}),
        None => json!({"status": status}),
    })
}

/// Where the challenge is, and the form that starts it.
fn challenge(session: &Session) -> Option<(String, String)> {
    let answer = session.facts.answer.as_ref()?;
    let question = CReq {
        message_version: answer.message_version,
        threeds_server_trans_id: session.id.to_string(),
        acs_trans_id: answer.acs_trans_id.clone(),
        challenge_window_size: FULL_SIZE.to_owned(),
        message_extension: None,
    };
    let text = write(&Message::CReq(question)).ok()?;
    let creq = base64url::encode(text.as_bytes());
    session
        .is_challenged()
        .then_some((answer.acs_url.clone()?, creq))
}

/// Tell the hosted page where to go in the end.
#[utoipa::path(
    post,
    path = "/3ds/redirect/{id}/finish",
    tag = "3-D Secure",
    params(
        ("id" = String, Path, description = "The session's id."),
        ("apiKey" = String, Query, description = "A public key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        (status = 200, description = "Where the merchant wants the browser."),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The call is not one of the page that was served last.",
         body = Problem),
        (status = 404, description = "No such session with a hosted page.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
pub(super) async fn finish(
    State(vault): State<Vault>,
    PathId(id): PathId,
    request: Request,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let caller = caller(&vault, request).await?;
    read(received)?;
    // A page that was loaded again has another nonce; where to go is the same for both.
    let (session, hosted) = open(&vault, &caller, &id).await?;
    let session = threeds::await_result(&vault, session).await?;
    Answer::ok(&json!({"location": location(&session, &hosted)}))
}

/// Where the merchant wants the browser, by what the network has said.
fn location<'a>(session: &Session, hosted: &'a Hosted) -> &'a str {
    match session.outcome() {
        Some(true) => &hosted.success,
        Some(false) | None => &hosted.failure,
    }
}

/// Who asks, by the key in the address.
async fn caller(vault: &Vault, request: Request) -> Result<Caller, ApiError> {
    let (query, trace_id, client) = request;
    let key = parameter(&query, "apiKey").unwrap_or_default();
    let trace_id = trace_id.map(|Extension(id)| id);
    let client = client.map(|Extension(client)| client);
    let caller = gate::caller_of(vault, &key, trace_id.as_ref(), client.as_ref()).await?;
    if caller.application_kind != ApplicationKind::Public {
        let why = "Only a public key may stand in an address.";
        return Err(ApiError::forbidden(why));
    }
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    threeds::require_offer(&caller)?;
    Ok(caller)
}

fn read(received: Option<Extension<Arc<Received>>>) -> Result<HostedBody, ApiError> {
    let received = received.map(|Extension(received)| received);
    let bytes = received.as_ref().and_then(|received| received.bytes());
    read_json(bytes.unwrap_or_default()).map_err(|broken| ApiError::all_invalid([broken]))
}

async fn open(vault: &Vault, caller: &Caller, id: &str) -> Result<(Session, Hosted), Error> {
    let session = threeds::open(vault, caller, id).await?;
    let hosted = session.facts.hosted.as_deref().cloned();
    let hosted = hosted.ok_or(Error::NotFound)?;
    Ok((session, hosted))
}

/// The same, for a call of the page that was served last.
async fn open_for_page(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    body: &HostedBody,
) -> Result<(Session, Hosted), ApiError> {
    let (session, hosted) = open(vault, caller, id).await?;
    let given = body.nonce.as_deref().unwrap_or_default();
    let is_meant = hosted
        .nonce
        .as_deref()
        .is_some_and(|nonce| bool::from(nonce.as_bytes().ct_eq(given.as_bytes())));
    match is_meant {
        true => Ok((session, hosted)),
        false => Err(ApiError::forbidden("Another page was served since.")),
    }
}
