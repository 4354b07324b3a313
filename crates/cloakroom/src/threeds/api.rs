//! Sessions over HTTP, for callers with a key.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::view::{AuthenticationBody, CreatedThreedsBody, ThreedsSessionBody};
use super::{Asker, CallbackUrls, Error, NewSession, Session};
use crate::access::{ApplicationKind, Permission};
use crate::api::{Answer, ApiError, BaseUrl, JsonBody, PathId, Problem, optional_object};
use crate::caller::Caller;
use crate::deprecations::Deprecated;
use crate::idempotency::Reply;
use crate::threeds;
use crate::threeds_requests::DeviceInfo;
use crate::vault::Vault;

const API_KEY: &str = "bt-api-key";

/// The routes of this room that need a key.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_threeds_session))
        .routes(routes!(find_threeds_session, describe_threeds_session))
        .routes(routes!(authenticate_threeds_session))
        .routes(routes!(find_threeds_result))
}

/// Create a 3DS session.
///
/// Needs `3ds:session:create`. Browser and app packages create sessions of customers with a public key;
/// merchants create their own. The card's range decides where its issuer is and what it can do.
#[utoipa::path(
    post,
    path = "/3ds/sessions",
    tag = "3-D Secure",
    request_body(content = NewThreedsBody, examples(
        ("merchant" = (summary = "A payment without the cardholder", value = json!({
            "type": "merchant", "token_id": "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d"
        }))),
    )),
    responses(
        (status = 201, description = "The session exists and is durable.", body = CreatedThreedsBody<'_>,
         headers(("Location" = String, description = "Where the session is."))),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission, or the tenant 3-D Secure.",
         body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 424, description = "No network knows the card, or it cannot be asked.",
         body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_threeds_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    headers: HeaderMap,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Before the body is looked at: a key without the permission learns nothing from the answer.
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    let body = body?;
    let body: NewThreedsBody = body.read()?;
    if body.pan.is_some() {
        caller.uses.note(Deprecated::ThreedsPan);
    }
    let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    let asker = Asker {
        address: caller.origin.map(|address| address.to_string()),
        accept: text(ACCEPT),
        accept_language: text(ACCEPT_LANGUAGE),
    };
    let key = match caller.application_kind {
        ApplicationKind::Public => headers.get(API_KEY).and_then(|key| key.to_str().ok()),
        ApplicationKind::Private | ApplicationKind::Management => None,
    };
    let reply = Reply::to(&caller, |created: &Session| {
        let location = format!("{base_url}/3ds/sessions/{}", created.id);
        Answer::created(
            location,
            &CreatedThreedsBody::new(&vault.config, created, key),
        )
    });
    let created = threeds::create(&vault, &caller, body.into(), asker, &reply).await?;
    reply.answer(&created)
}

/// Tell a 3DS session the app that the cardholder uses.
///
/// Needs `3ds:session:create` and the application that created the session, which must be one for an
/// app that is not authenticated yet.
#[utoipa::path(
    put,
    path = "/3ds/sessions/{id}",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    request_body = DeviceBody,
    responses(
        (status = 200, description = "The session knows the app.", body = CreatedThreedsBody<'_>),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission, or the tenant 3-D Secure.",
         body = Problem),
        (status = 404, description = "No such session for an app of this application.",
         body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn describe_threeds_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    let body = body?;
    let body: DeviceBody = body.read()?;
    let reply = Reply::to(&caller, |session: &Session| {
        Answer::ok(&CreatedThreedsBody::new(&vault.config, session, None))
    });
    let session = threeds::describe(&vault, &caller, &id, body.device_info, &reply).await?;
    reply.answer(&session)
}

/// Read a 3DS session.
///
/// Needs `3ds:session:read`.
#[utoipa::path(
    get,
    path = "/3ds/sessions/{id}",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    responses(
        (status = 200, description = "The session.", body = ThreedsSessionBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission, or the tenant 3-D Secure.",
         body = Problem),
        (status = 404, description = "No such session, or it has expired.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_threeds_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let session = threeds::find(&vault, &caller, &id).await?;
    Answer::ok(&ThreedsSessionBody::new(&vault.config, &session))
}

/// Authenticate a 3DS session.
///
/// Needs `3ds:session:authenticate`. Asks the card's network and issuer, once. An authentication that
/// failed is a success of this call: see `authentication_status`. docs/api/threeds.md has the rules for
/// every field.
#[utoipa::path(
    post,
    path = "/3ds/sessions/{id}/authenticate",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    request_body = AuthenticateBody,
    responses(
        (status = 200, description = "What the issuer says.", body = AuthenticationBody<'_>),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission, or the tenant 3-D Secure.",
         body = Problem),
        (status = 404, description = "No such session, or its card is gone.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 424, description = "The network or issuer could not be asked, or refused. It may \
         be asked again, unless `error.service_status` is 502 or 504.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn authenticate_threeds_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ThreedsSessionAuthenticate)?;
    let body = body?;
    let body: Map<String, Value> = body.read()?;
    let reply = Reply::to(&caller, answer_authentication);
    let session = threeds::authenticate(&vault, &caller, &id, body, &reply).await?;
    reply.answer(&session)
}

/// Read what came of a challenge.
///
/// Needs `3ds:session:authenticate`. May be read any number of times.
#[utoipa::path(
    get,
    path = "/3ds/sessions/{id}/challenge-result",
    tag = "3-D Secure",
    params(("id" = String, Path, description = "The session's id.")),
    responses(
        (status = 200, description = "What the issuer says in the end.", body = AuthenticationBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission, or the tenant 3-D Secure.",
         body = Problem),
        (status = 404, description = "No such session, or it has expired.", body = Problem),
        (status = 424, description = "The result has not been received.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_threeds_result(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let session = threeds::find_result(&vault, &caller, &id).await?;
    answer_authentication(&session)
}

fn answer_authentication(session: &Session) -> Result<Answer, ApiError> {
    let body = AuthenticationBody::new(session);
    Answer::ok(&body.ok_or_else(|| ApiError::internal("no_authentication"))?)
}

/// A session to create.
#[derive(Deserialize, ToSchema)]
struct NewThreedsBody {
    /// A token that holds a card number. One of `token_id` and `token_intent_id` is needed.
    token_id: Option<String>,
    token_intent_id: Option<String>,
    /// The older name of `token_id`. Never a card number.
    #[schema(deprecated)]
    pan: Option<String>,
    /// `customer`, which is the default, or `merchant`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// `browser` or `app`; needed for customers.
    device: Option<String>,
    /// What the device tells of itself; needed for browsers.
    #[serde(default, deserialize_with = "optional_object")]
    device_info: Option<DeviceInfo>,
    /// `iframe` or `redirect`.
    web_challenge_mode: Option<String>,
    /// What the hosted page asks for, as for authenticating. With `callback_urls`.
    #[schema(value_type = Option<AuthenticateBody>)]
    authentication_request: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "optional_object")]
    callback_urls: Option<CallbackUrls>,
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<Map<String, Value>>,
}

impl From<NewThreedsBody> for NewSession {
    fn from(body: NewThreedsBody) -> Self {
        Self {
            token_id: body.token_id,
            token_intent_id: body.token_intent_id,
            pan: body.pan,
            kind: body.kind,
            device: body.device,
            device_info: body.device_info,
            web_challenge_mode: body.web_challenge_mode,
            authentication_request: body.authentication_request,
            callback_urls: body.callback_urls,
            metadata: body.metadata,
        }
    }
}

/// The app that a cardholder uses.
#[derive(Deserialize, ToSchema)]
struct DeviceBody {
    device_info: Option<DeviceInfo>,
}

/// What is to be authenticated. docs/api/threeds.md says when each field is needed and what it may hold.
#[expect(dead_code, reason = "describes what is read field by field")]
#[derive(ToSchema)]
struct AuthenticateBody {
    /// `payment` or `non-payment`.
    authentication_category: String,
    authentication_type: String,
    #[schema(nullable = false)]
    card_brand: Option<String>,
    #[schema(nullable = false)]
    request_decoupled_challenge: Option<bool>,
    /// Minutes.
    #[schema(nullable = false, minimum = 1, maximum = 10080)]
    decoupled_challenge_max_time: Option<u32>,
    #[schema(nullable = false)]
    challenge_preference: Option<String>,
    #[schema(nullable = false, value_type = Option<Object>)]
    purchase_info: Option<Value>,
    #[schema(nullable = false, value_type = Option<Object>)]
    merchant_info: Option<Value>,
    #[schema(value_type = Object)]
    requestor_info: Value,
    #[schema(value_type = Object)]
    cardholder_info: Value,
    #[schema(nullable = false, value_type = Option<Object>)]
    broadcast_info: Option<Value>,
    #[schema(nullable = false, value_type = Option<Vec<Object>>)]
    message_extensions: Option<Value>,
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<Value>,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::NotOffered => Self::forbidden("3-D Secure is not enabled for this tenant."),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("3DS session not found."),
            Error::Conflict(why) => Self::conflict(why),
            Error::Trouble { session, trouble } => {
                let detail = match trouble.detail.as_str() {
                    "" => trouble.message.to_owned(),
                    detail => detail.to_owned(),
                };
                let mut error = json!({
                    "service_status": trouble.service_status.to_string(),
                    "error_source": trouble.party.name(),
                    "message": trouble.message,
                    "detail": detail,
                });
                if let Some(session) = session {
                    error["session_id"] = json!(session);
                }
                Self::failed_dependency("3DS Service Error", trouble.message, error)
            }
            Error::Unauthorized(error) => error.into(),
            Error::Unrecorded(error) => error.into(),
            Error::Token(error) => error.into(),
            Error::Intent(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
