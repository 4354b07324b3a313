//! The hosted page and its calls.
//!
//! The public key in the URL identifies the tenant. The nonce authenticates the calls of the page that the cardholder
//! has open: it is issued to the page that is served last, until a page reports its device. From then on no further
//! nonce is issued, so the URL alone is not enough to take over the session. The page's script stores the nonce in
//! `sessionStorage`, so that it survives a reload.
//!
//! The page receives no responses of issuers or networks, except whether there is a challenge. At the end it receives
//! the callback URL to redirect the browser to.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use cloakroom_core::access::{ApplicationKind, Permission, TenantKind};
use cloakroom_core::authentication;
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_crypto::random_base58;
use cloakroom_emv3ds::{CReq, Message, base64url, write};
use cloakroom_management::branding::{self, Branding};
use cloakroom_pages::{Money, PageContext};
use cloakroom_platform::api::{
    Answer, ApiError, ClientAddr, PathId, Problem, ReadErrors, Received, read_json,
};
use cloakroom_platform::telemetry::TraceId;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;

use super::parameter;
use crate::requests::DeviceInfo;
use crate::server::ThreedsServer;
use crate::sessions::{self, Error, Hosted, Session, State as SessionState};
use crate::{card_testing, pages};

const NONCE_CHARACTERS: usize = 32;
/// Challenge window size: full screen.
const FULL_SIZE: &str = "05";

/// Parts of every request of the page: query with the public key, trace ID and client address.
type Request = (
    RawQuery,
    Option<Extension<TraceId>>,
    Option<Extension<ClientAddr>>,
);

/// Show the hosted page.
///
/// For sessions created with `callback_urls`. `apiKey` is a public API key of the tenant.
#[utoipa::path(
    get, path = "/3ds/redirect/{id}", tag = "3-D Secure",
    operation_id = "show_hosted_threeds_page",
    params(
        ("id" = String, Path, description = "The session ID."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "A page.", content_type = "text/html"),
        (status = 403, description = "The key lacks the permission, 3-D Secure is not enabled for the tenant, or the \
         host of a callback URL is not allowed.", body = Problem),
        (status = 404, description = "The session does not exist or has no hosted page.", body = Problem),
    ),
)]
pub(super) async fn show(
    State(server): State<ThreedsServer>,
    PathId(id): PathId,
    context: PageContext,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = authenticate_key(&server, request).await?;
    let (session, hosted) = load(&server, &caller, &id).await?;
    let branding = branding::find_for_page(&server, caller.tenant).await?;
    let device = session.facts.device_info.as_ref();
    let context = context.with_language(device.and_then(|it| it.browser_language.as_deref()));
    let nonce = random_base58(NONCE_CHARACTERS);
    let is_issued = sessions::issue_nonce(&server, &session, &nonce).await?;
    let base = server.config.http.base_url.as_ref();
    let page = pages::Hosted {
        session: session.id,
        nonce: is_issued.then_some(nonce),
        is_authenticated: !matches!(
            session.state(),
            SessionState::Created | SessionState::MethodDone
        ),
        api: base.map_or_else(String::new, |base| base.as_str().to_owned()),
        merchant: merchant(&hosted, branding.as_ref()),
        amount: amount(&hosted.authentication_request),
        branding,
    };
    Ok(pages::hosted(&context, &page).into_response())
}

/// What the cardholder knows the merchant by: the name in the authentication request, which the issuer shows as well, or
/// that of the branding, or the host that the browser returns to.
fn merchant(hosted: &Hosted, branding: Option<&Branding>) -> String {
    let name = value_at(&hosted.authentication_request, "merchant_info.name");
    let name = name.or_else(|| branding.and_then(|branding| branding.name.clone()));
    name.unwrap_or_else(|| {
        let uri: Option<http::Uri> = hosted.success.parse().ok();
        uri.and_then(|uri| uri.host().map(str::to_owned))
            .unwrap_or_default()
    })
}

fn amount(request: &Map<String, Value>) -> Option<Money> {
    let value = |path| value_at(request, path);
    let (amount, exponent) = (
        value("purchase_info.amount")?,
        value("purchase_info.exponent")?,
    );
    Money::parse(&amount, &exponent, &value("purchase_info.currency")?)
}

/// A text of the authentication request, which was validated when the session was created.
fn value_at(request: &Map<String, Value>, path: &str) -> Option<String> {
    let (object, name) = path.split_once('.')?;
    match request.get(object)?.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Request body of the page: its nonce and, for `device`, the device data.
#[derive(Deserialize, ToSchema)]
struct HostedBody {
    #[schema(required)]
    nonce: Option<String>,
    device_info: Option<DeviceInfo>,
}

/// Send the device data of the hosted page.
#[utoipa::path(
    post, path = "/3ds/redirect/{id}/device", tag = "3-D Secure",
    operation_id = "send_hosted_device_info",
    params(
        ("id" = String, Path, description = "The session ID."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        ReadErrors,
        (status = 200, description = "The 3DS Method URL and form data, if the issuer has a 3DS Method."),
        (status = 400, description = "An attribute is invalid.", body = Problem),
        (status = 403, description = "The nonce does not match the page that was opened.", body = Problem),
        (status = 404, description = "The session does not exist or has no hosted page.", body = Problem),
        (status = 429, description = "Issuers declined too many cards of this key and client address.", body = Problem),
    ),
)]
pub(super) async fn tell_device(
    State(server): State<ThreedsServer>,
    PathId(id): PathId,
    request: Request,
    headers: HeaderMap,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let address = request.2.as_ref().map(|Extension(client)| client.0);
    let call = PageCall::accept(&server, &id, request, received).await?;
    card_testing::admit(&server.card_testing, &call.caller).await?;
    let device = device(call.device_info, address, &headers);
    let group = card_testing::group_of(&server.card_testing, &call.caller).await?;
    let session = sessions::store_browser_info(&server, &call.session, device, group).await?;
    Answer::ok(&method_form(&server, &session))
}

fn device(info: Option<DeviceInfo>, address: Option<IpAddr>, headers: &HeaderMap) -> DeviceInfo {
    let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    let mut device = info.unwrap_or_default();
    let address = address.map(|address| address.to_string());
    device.complete(address, text(ACCEPT).as_deref());
    device.accept_language = text(ACCEPT_LANGUAGE);
    device
}

/// URL and form data of the 3DS Method; empty if the issuer has none.
fn method_form(server: &ThreedsServer, session: &Session) -> serde_json::Value {
    let network_range = session.network_range(None);
    let base = server.config.http.base_url.as_ref();
    let url =
        network_range.and_then(|network_range| sessions::method_url(&server.config, network_range));
    match (url, base) {
        (Some(url), Some(base)) => {
            let data = json!({
                "threeDSServerTransID": session.id,
                "threeDSMethodNotificationURL":
                    sessions::notification_url(base, session, "method-notification"),
            });
            let data = base64url::encode(data.to_string().as_bytes());
            json!({"method_url": url, "method_data": data})
        }
        _ => json!({}),
    }
}

/// Authenticate from the hosted page.
#[utoipa::path(
    post, path = "/3ds/redirect/{id}/authenticate", tag = "3-D Secure",
    operation_id = "authenticate_hosted_session",
    params(
        ("id" = String, Path, description = "The session ID."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        ReadErrors,
        (status = 200, description = "`challenge` with the ACS URL and CReq, or `done`."),
        (status = 400, description = "An attribute is invalid.", body = Problem),
        (status = 403, description = "The nonce does not match the page that was opened.", body = Problem),
        (status = 404, description = "The session does not exist or has no hosted page.", body = Problem),
        (status = 409, description = "The session is already authenticated.", body = Problem),
        (status = 429, description = "Issuers declined too many cards of this key and client address.", body = Problem),
    ),
)]
pub(super) async fn ask(
    State(server): State<ThreedsServer>,
    PathId(id): PathId,
    request: Request,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let PageCall {
        caller,
        session,
        hosted,
        ..
    } = PageCall::accept(&server, &id, request, received).await?;
    card_testing::admit(&server.card_testing, &caller).await?;
    let request = &hosted.authentication_request;
    let template = ResponseTemplate::none();
    let challenge =
        match sessions::authenticate_session(&server, &caller, session, request, &template).await {
            Ok(session) => challenge_form(&session),
            // Network errors are for the merchant's server and are not returned to a public key.
            Err(Error::Network { .. }) => None,
            Err(error) => return Err(error.into()),
        };
    Answer::ok(&match challenge {
        Some((acs_url, creq)) => json!({"status": "challenge", "acs_url": acs_url, "creq": creq}),
        None => json!({"status": "done"}),
    })
}

/// ACS URL and encoded CReq, if a challenge is required.
fn challenge_form(session: &Session) -> Option<(String, String)> {
    let ares = session.facts.ares.as_ref()?;
    let creq = CReq {
        message_version: ares.message_version,
        threeds_server_trans_id: session.id.to_string(),
        acs_trans_id: ares.acs_trans_id.clone(),
        challenge_window_size: FULL_SIZE.to_owned(),
        message_extension: None,
    };
    let text = write(&Message::CReq(creq)).ok()?;
    let creq = base64url::encode(text.as_bytes());
    session
        .is_challenged()
        .then_some((ares.acs_url.clone()?, creq))
}

/// Get the callback URL for the outcome.
#[utoipa::path(
    post, path = "/3ds/redirect/{id}/finish", tag = "3-D Secure",
    operation_id = "complete_hosted_session",
    params(
        ("id" = String, Path, description = "The session ID."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        ReadErrors,
        (status = 200, description = "The callback URL to redirect the browser to."),
        (status = 400, description = "An attribute is invalid.", body = Problem),
        (status = 403, description = "The nonce does not match the page that was opened.", body = Problem),
        (status = 404, description = "The session does not exist or has no hosted page.", body = Problem),
    ),
)]
pub(super) async fn finish(
    State(server): State<ThreedsServer>,
    PathId(id): PathId,
    request: Request,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let call = PageCall::accept(&server, &id, request, received).await?;
    let session = sessions::await_result(&server, call.session).await?;
    Answer::ok(&json!({"location": callback_url(&session, &call.hosted)}))
}

/// Leave the hosted page.
///
/// Returns the callback URL without waiting for the outcome of a challenge. The session does not change: the issuer may
/// still complete the challenge, and otherwise it times out.
#[utoipa::path(
    post, path = "/3ds/redirect/{id}/cancel", tag = "3-D Secure",
    operation_id = "cancel_hosted_session",
    params(
        ("id" = String, Path, description = "The session ID."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    request_body = HostedBody,
    responses(
        ReadErrors,
        (status = 200, description = "The callback URL to redirect the browser to."),
        (status = 400, description = "An attribute is invalid.", body = Problem),
        (status = 403, description = "The nonce does not match the page that was opened.", body = Problem),
        (status = 404, description = "The session does not exist or has no hosted page.", body = Problem),
    ),
)]
pub(super) async fn cancel(
    State(server): State<ThreedsServer>,
    PathId(id): PathId,
    request: Request,
    received: Option<Extension<Arc<Received>>>,
) -> Result<Answer, ApiError> {
    let call = PageCall::accept(&server, &id, request, received).await?;
    Answer::ok(&json!({"location": callback_url(&call.session, &call.hosted)}))
}

/// The callback URL for the outcome that the network reported.
fn callback_url<'a>(session: &Session, hosted: &'a Hosted) -> &'a str {
    match session.outcome() {
        Some(true) => &hosted.success,
        Some(false) | None => &hosted.failure,
    }
}

/// Authenticates the public key in the URL.
async fn authenticate_key(server: &ThreedsServer, request: Request) -> Result<Caller, ApiError> {
    let (query, trace_id, client) = request;
    let key = parameter(&query, "apiKey").unwrap_or_default();
    let trace_id = trace_id.map(|Extension(id)| id);
    let client = client.map(|Extension(client)| client);
    let caller =
        authentication::authenticate_caller(server, &key, trace_id.as_ref(), client.as_ref())
            .await?;
    if caller.application_kind != ApplicationKind::Public {
        let why = "Only a public API key may be used in a URL.";
        return Err(ApiError::forbidden(why));
    }
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    sessions::require_threeds(&caller)?;
    Ok(caller)
}

fn parse_body(received: Option<Extension<Arc<Received>>>) -> Result<HostedBody, ApiError> {
    let received = received.map(|Extension(received)| received);
    let bytes = received.as_ref().and_then(|received| received.bytes());
    read_json(bytes.unwrap_or_default()).map_err(|error| ApiError::all_invalid([error]))
}

/// Loads a session with a hosted page whose callback URLs are still allowed by the tenant.
async fn load(
    server: &ThreedsServer,
    caller: &Caller,
    id: &str,
) -> Result<(Session, Hosted), ApiError> {
    let session = sessions::load(server, caller, id).await?;
    let hosted = session.facts.hosted.as_deref().cloned();
    let hosted = hosted.ok_or(Error::NotFound)?;
    let hosts = &caller.settings.threeds_callback_hosts;
    let is_test = caller.tenant_kind == TenantKind::Test;
    let is_allowed = |url: &String| hosts.check(url, is_test).is_ok();
    if !is_allowed(&hosted.success) || !is_allowed(&hosted.failure) {
        let why = "The host of a callback URL is not in the tenant setting threeds_callback_hosts.";
        return Err(ApiError::forbidden(why));
    }
    Ok((session, hosted))
}

/// A call of the hosted page, with the public key in its URL and the nonce of the page that was opened last.
struct PageCall {
    caller: Caller,
    session: Session,
    hosted: Hosted,
    device_info: Option<DeviceInfo>,
}

impl PageCall {
    async fn accept(
        server: &ThreedsServer,
        id: &str,
        request: Request,
        received: Option<Extension<Arc<Received>>>,
    ) -> Result<Self, ApiError> {
        let caller = authenticate_key(server, request).await?;
        let body = parse_body(received)?;
        let (session, hosted) = load(server, &caller, id).await?;
        let given = body.nonce.as_deref().unwrap_or_default();
        let is_valid = hosted
            .nonce
            .as_deref()
            .is_some_and(|nonce| bool::from(nonce.as_bytes().ct_eq(given.as_bytes())));
        match is_valid {
            true => Ok(Self {
                caller,
                session,
                hosted,
                device_info: body.device_info,
            }),
            false => Err(ApiError::forbidden(
                "The nonce does not match the page that was opened for this session.",
            )),
        }
    }
}
