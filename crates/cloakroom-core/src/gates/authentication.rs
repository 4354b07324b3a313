//! Authentication middleware for every route that requires an API key.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use cloakroom_platform::api::{ApiError, ClientAddr};
use cloakroom_platform::config::Environment;
use cloakroom_platform::telemetry::{Actor, KeyPrefix, TraceId};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::access::key_prefix;
use crate::authentication::{
    authenticate, authenticate_uncached, authenticate_with_fallback, caller,
};
use crate::caller::Caller;
use crate::vault::Vault;

pub const API_KEY: HeaderName = HeaderName::from_static("bt-api-key");

/// Database servers that may look up the API key of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyLookup {
    /// The primary only, for every route that reads or writes a tenant's data: a standby may not know yet that a key
    /// was deleted.
    Primary,
    /// A standby while the primary is unavailable, for data that is the same for all tenants.
    PrimaryOrStandby,
}

/// Attaches the authenticated caller to the request and runs `next`, or responds with 401, or with 403 for a session
/// that is not authorized yet.
///
/// Attaches the `Actor` to the response, for the log line of the request.
pub async fn require_key<F>(
    vault: &Vault,
    lookup: KeyLookup,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let extensions = request.extensions();
    let (trace_id, client) = (extensions.get::<TraceId>(), extensions.get::<ClientAddr>());
    let key = api_key(request.headers());
    // The rare cases are boxed, to keep the future of every request small.
    let principal = match lookup {
        KeyLookup::Primary if changes_access(&request) => {
            Box::pin(authenticate_uncached(vault, key)).await
        }
        KeyLookup::Primary => authenticate(vault, key).await,
        KeyLookup::PrimaryOrStandby => Box::pin(authenticate_with_fallback(vault, key)).await,
    };
    let caller = match principal
        .map_err(ApiError::from)
        .and_then(|principal| caller(principal, trace_id, client))
    {
        Ok(caller) => caller,
        Err(error) => {
            let environment = vault.config.vault.environment;
            let error = explain_rejected_key(error, request.headers(), environment);
            return error.into_response();
        }
    };
    let actor = actor_of(&caller);
    request.extensions_mut().insert(Arc::new(caller));
    let mut response = next(request).await;
    response.extensions_mut().insert(actor);
    response
}

/// Attaches the authenticated caller to a request that has an API key, and runs `next`. A request without the header has
/// no caller; an invalid key is rejected, even where none is required.
pub async fn accept_key<F>(
    vault: &Vault,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
    reject: impl FnOnce(ApiError) -> Response,
) -> Response
where
    F: Future<Output = Response>,
{
    if !request.headers().contains_key(API_KEY) {
        return next(request).await;
    }
    let extensions = request.extensions();
    let (trace_id, client) = (extensions.get::<TraceId>(), extensions.get::<ClientAddr>());
    let principal = authenticate(vault, api_key(request.headers())).await;
    let caller = match principal
        .map_err(ApiError::from)
        .and_then(|principal| caller(principal, trace_id, client))
    {
        Ok(caller) => caller,
        Err(error) => return reject(error),
    };
    let actor = actor_of(&caller);
    request.extensions_mut().insert(Arc::new(caller));
    let mut response = next(request).await;
    response.extensions_mut().insert(actor);
    response
}

fn actor_of(caller: &Caller) -> Actor {
    Actor {
        tenant: caller.tenant.uuid,
        application: caller.application,
        key: caller.key,
    }
}

/// The request's API key; empty, and therefore invalid, unless exactly one is sent. Of two keys, a proxy may have
/// checked the other one.
fn api_key(headers: &HeaderMap) -> &str {
    let mut keys = headers.get_all(API_KEY).iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => key.to_str().unwrap_or_default(),
        _ => "",
    }
}

/// Says where the key belongs, if it was not sent there or is one of another kind of vault.
fn explain_rejected_key(
    error: ApiError,
    headers: &HeaderMap,
    environment: Environment,
) -> ApiError {
    if error.status() != StatusCode::UNAUTHORIZED {
        return error;
    }
    if headers.contains_key(API_KEY) {
        // The prefix of a key is no secret.
        let (is_production, is_test) = (
            api_key(headers).starts_with("key_prod_"),
            api_key(headers).starts_with("key_test_"),
        );
        return match environment {
            Environment::Test if is_production => {
                ApiError::no_key("The API key is one of a production vault; this is a test vault.")
            }
            Environment::Production if is_test => {
                ApiError::no_key("The API key is one of a test vault; this is a production vault.")
            }
            Environment::Test | Environment::Production => error,
        };
    }
    ApiError::no_key(match headers.contains_key(AUTHORIZATION) {
        true => "Send the API key in the BT-API-KEY header, not in Authorization.",
        false => "The BT-API-KEY header is missing.",
    })
}

/// Whether a request creates or changes keys, grants, proxies or tenants. Its key is looked up without the cache, because the
/// change would outlast a key that was just deleted through another node.
fn changes_access(request: &Request) -> bool {
    const PATHS: [&str; 4] = [
        "/applications",
        "/proxies",
        "/sessions/authorize",
        "/tenants",
    ];
    let path = request.uri().path();
    request.method() != Method::GET && PATHS.iter().any(|prefix| path.starts_with(prefix))
}

/// The prefix of an API key, which may be logged: it identifies the key and contains no secret.
pub fn request_key_prefix(key: &HeaderValue) -> Option<KeyPrefix> {
    let prefix = key_prefix(key.to_str().ok()?)?;
    Some(KeyPrefix(prefix.into()))
}
