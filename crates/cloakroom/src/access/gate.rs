//! The gate in front of every route that needs a key.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName};

use super::{Error, authenticate};
use crate::api::{ApiError, ClientAddr};
use crate::caller::{Caller, Denied, Standing};
use crate::telemetry::{Actor, TraceId};
use crate::vault::Vault;

const API_KEY: HeaderName = HeaderName::from_static("bt-api-key");

/// Lets a request through with its caller attached, or answers 401.
pub async fn require_key(State(vault): State<Vault>, mut request: Request, next: Next) -> Response {
    let holder = match authenticate(&vault, offered_key(request.headers())).await {
        Ok(holder) => holder,
        Err(error) => return ApiError::from(error).into_response(),
    };
    if holder.standing == Standing::Unauthorized {
        return ApiError::forbidden("The session is not authorized yet.").into_response();
    }
    let actor = Actor {
        tenant: holder.tenant.uuid,
        application: holder.application,
        key: holder.key,
    };
    let trace_id = request.extensions().get::<TraceId>();
    let trace_id = trace_id.map_or_else(|| "".into(), |id| id.0.clone());
    let origin = request
        .extensions()
        .get::<ClientAddr>()
        .map(|client| client.0);
    let caller = Arc::new(Caller::new(holder, trace_id, origin));
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(actor);
    response
}

/// The one key that was sent. Of two, a proxy in front may have believed the other: neither counts.
fn offered_key(headers: &HeaderMap) -> &str {
    let mut keys = headers.get_all(API_KEY).iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => key.to_str().unwrap_or_default(),
        _ => "",
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unauthorized => Self::unauthorized(),
            Error::Invalid { field, rule } => Self::invalid(field, rule),
            Error::NotFound(what) => Self::not_found(format!("There is no such {what}.")),
            Error::Altered(_) => Self::internal("altered_row"),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        Self::forbidden(format!("The key's application lacks {} here.", denied.0))
    }
}
