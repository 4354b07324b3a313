//! HTTP handlers of the sessions API.

mod body;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::{ApplicationKind, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, JsonBody, PathId, Problem, ReadErrors, WriteErrors,
};
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::body::{AuthenticateBody, DeviceBody, NewThreedsBody};
use super::view::{AuthenticationBody, CreatedThreedsBody, ThreedsSessionBody};
use super::{ClientInfo, Error, Session};
use crate::server::ThreedsServer;
use crate::sessions;

const API_KEY: &str = "bt-api-key";

/// Routes of this module that require an API key.
pub fn routes() -> OpenApiRouter<ThreedsServer> {
    OpenApiRouter::new()
        .routes(routes!(create_threeds_session))
        .routes(routes!(find_threeds_session, describe_threeds_session))
        .routes(routes!(authenticate_threeds_session))
        .routes(routes!(find_threeds_result))
}

/// Create a 3DS session.
///
/// Requires `3ds:session:create`. Browser and app SDKs create customer sessions with a public key; merchants create
/// merchant-initiated (3RI) sessions. The card range determines the card networks and the supported protocol versions.
/// Sessions with `callback_urls` require a private key.
#[utoipa::path(
    post, path = "/3ds/sessions", tag = "3-D Secure",
    request_body = NewThreedsBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The session was created and is durable.", body = CreatedThreedsBody<'_>,
         headers(("Location" = String, description = "URL of the session."))),
        (status = 403, description = "The key lacks the permission, or 3-D Secure is not enabled for the tenant.",
         body = Problem),
        (status = 424, description = "No card network supports the card, or the network is unavailable.",
         body = Problem),
        (status = 429, description = "Issuers declined too many cards of this public key and client \
         address.", body = Problem),
    ),
)]
async fn create_threeds_session(
    State(server): State<ThreedsServer>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    headers: HeaderMap,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Checked before the body is read, so that a key without the permission gets no validation errors.
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    let body = body?;
    let body: NewThreedsBody = body.read()?;
    if body.pan.is_some() {
        caller
            .deprecated_features
            .mark(DeprecatedFeature::ThreedsPan);
    }
    let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    let client = ClientInfo {
        address: caller.origin.map(|address| address.to_string()),
        accept: text(ACCEPT),
        accept_language: text(ACCEPT_LANGUAGE),
    };
    let key = match caller.application_kind {
        ApplicationKind::Public => headers.get(API_KEY).and_then(|key| key.to_str().ok()),
        ApplicationKind::Private | ApplicationKind::Management => None,
    };
    let template = caller.response_template(|created: &Session| {
        let location = format!("{base_url}/3ds/sessions/{}", created.id);
        Answer::created(
            location,
            &CreatedThreedsBody::new(&server.config, created, key),
        )
    });
    let created = sessions::create(&server, &caller, body.into(), client, &template).await?;
    template.render(&created)
}

/// Update the device of a 3DS session.
///
/// Requires `3ds:session:create` and the application that created the session. The session must be an app session that
/// is not authenticated yet.
#[utoipa::path(
    put, path = "/3ds/sessions/{id}", tag = "3-D Secure",
    params(("id" = String, Path, description = "The session ID.")),
    request_body = DeviceBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The session was updated.", body = CreatedThreedsBody<'_>),
        (status = 403, description = "The key lacks the permission, or 3-D Secure is not enabled for the tenant.",
         body = Problem),
        (status = 404, description = "The application has no app session with this ID.", body = Problem),
    ),
)]
async fn describe_threeds_session(
    State(server): State<ThreedsServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    let body = body?;
    let body: DeviceBody = body.read()?;
    let template = caller.response_template(|session: &Session| {
        Answer::ok(&CreatedThreedsBody::new(&server.config, session, None))
    });
    let session =
        sessions::update_device(&server, &caller, &id, body.device_info, &template).await?;
    template.render(&session)
}

/// Get a 3DS session.
///
/// Requires `3ds:session:read`.
#[utoipa::path(
    get, path = "/3ds/sessions/{id}", tag = "3-D Secure",
    params(("id" = String, Path, description = "The session ID.")),
    responses(
        ReadErrors,
        (status = 200, description = "The session.", body = ThreedsSessionBody<'_>),
        (status = 403, description = "The key lacks the permission, or 3-D Secure is not enabled for the tenant.",
         body = Problem),
        (status = 404, description = "The session does not exist or has expired.", body = Problem),
    ),
)]
async fn find_threeds_session(
    State(server): State<ThreedsServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let session = sessions::find(&server, &caller, &id).await?;
    Answer::ok(&ThreedsSessionBody::new(&server.config, &session))
}

/// Authenticate a 3DS session.
///
/// Requires `3ds:session:authenticate`. Sends one authentication request to the card's network and issuer. A failed
/// authentication is returned with status 200: see `authentication_status`. docs/api/threeds.md has the rules of every
/// field.
#[utoipa::path(
    post, path = "/3ds/sessions/{id}/authenticate", tag = "3-D Secure",
    params(("id" = String, Path, description = "The session ID.")),
    request_body = AuthenticateBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The outcome of the authentication.", body = AuthenticationBody<'_>),
        (status = 403, description = "The key lacks the permission, or 3-D Secure is not enabled for the tenant.",
         body = Problem),
        (status = 404, description = "The session or its card does not exist.", body = Problem),
        (status = 424, description = "The network or issuer was unavailable or rejected the request. \
         Retry, unless `error.service_status` is 502 or 504.", body = Problem),
        (status = 429, description = "Issuers declined too many cards of the public key and client \
         address that created the session.", body = Problem),
    ),
)]
async fn authenticate_threeds_session(
    State(server): State<ThreedsServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ThreedsSessionAuthenticate)?;
    let body = body?;
    let body: Map<String, Value> = body.read()?;
    let template = caller.response_template(authentication_response);
    let session = sessions::authenticate(&server, &caller, &id, body, &template).await?;
    template.render(&session)
}

/// Get the result of a challenge.
///
/// Requires `3ds:session:authenticate`. Can be called repeatedly.
#[utoipa::path(
    get, path = "/3ds/sessions/{id}/challenge-result", tag = "3-D Secure",
    params(("id" = String, Path, description = "The session ID.")),
    responses(
        ReadErrors,
        (status = 200, description = "The final outcome of the authentication.", body = AuthenticationBody<'_>),
        (status = 403, description = "The key lacks the permission, or 3-D Secure is not enabled for the tenant.",
         body = Problem),
        (status = 404, description = "The session does not exist or has expired.", body = Problem),
        (status = 424, description = "The result has not been received.", body = Problem),
    ),
)]
async fn find_threeds_result(
    State(server): State<ThreedsServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let session = sessions::find_result(&server, &caller, &id).await?;
    authentication_response(&session)
}

fn authentication_response(session: &Session) -> Result<Answer, ApiError> {
    let body = AuthenticationBody::new(session);
    Answer::ok(&body.ok_or_else(|| ApiError::internal("no_authentication"))?)
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::NotEnabled => Self::forbidden("3-D Secure is not enabled for this tenant."),
            Error::HostedByPublicKey => Self::forbidden(
                "A session with authentication_request and callback_urls must be created with a \
                 private key.",
            ),
            Error::Invalid(errors) => Self::all_invalid(errors),
            Error::NotFound => Self::not_found("3DS session not found."),
            Error::Conflict(why) => Self::conflict(why),
            Error::Network { session, failure } => {
                let detail = match failure.detail.as_str() {
                    "" => failure.message.to_owned(),
                    detail => detail.to_owned(),
                };
                let mut error = json!({
                    "service_status": failure.service_status.to_string(),
                    "error_source": failure.error_source.name(),
                    "message": failure.message,
                    "detail": detail,
                });
                if let Some(session) = session {
                    error["session_id"] = json!(session);
                }
                Self::failed_dependency("3DS Service Error", failure.message, error)
            }
            Error::CardTesting(error) => error.into(),
            Error::Unauthorized(error) => error.into(),
            Error::AuditError(error) => error.into(),
            Error::Token(error) => error.into(),
            Error::Intent(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
