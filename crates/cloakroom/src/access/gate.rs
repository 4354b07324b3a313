//! The gate in front of every route that needs a key.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName};

use super::{Error, authenticate, authenticate_at_any};
use crate::api::{ApiError, ClientAddr};
use crate::caller::{Caller, Denied, Holder, Standing};
use crate::telemetry::{Actor, TraceId};
use crate::vault::Vault;

const API_KEY: HeaderName = HeaderName::from_static("bt-api-key");

/// Where the key of a request may be looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// For everything that changes or tells what a tenant keeps.
    Primary,
    /// For what is the same for everybody: while the primary is away, at a standby.
    AnyServer,
}

/// Lets a request through with its caller attached, or answers 401.
pub async fn require_key<F>(
    vault: &Vault,
    source: Source,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let extensions = request.extensions();
    let (trace_id, client) = (extensions.get::<TraceId>(), extensions.get::<ClientAddr>());
    let key = offered_key(request.headers());
    let holder = match source {
        Source::Primary => authenticate(vault, key).await,
        Source::AnyServer => Box::pin(authenticate_at_any(vault, key)).await,
    };
    let caller = match holder
        .map_err(ApiError::from)
        .and_then(|holder| caller(holder, trace_id, client))
    {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    let actor = Actor {
        tenant: caller.tenant.uuid,
        application: caller.application,
        key: caller.key,
    };
    request.extensions_mut().insert(Arc::new(caller));
    let mut response = next(request).await;
    response.extensions_mut().insert(actor);
    response
}

/// Who asks with a key.
pub(crate) async fn caller_of(
    vault: &Vault,
    key: &str,
    trace_id: Option<&TraceId>,
    client: Option<&ClientAddr>,
) -> Result<Caller, ApiError> {
    caller(authenticate(vault, key).await?, trace_id, client)
}

fn caller(
    holder: Arc<Holder>,
    trace_id: Option<&TraceId>,
    client: Option<&ClientAddr>,
) -> Result<Caller, ApiError> {
    if holder.standing == Standing::Unauthorized {
        return Err(ApiError::forbidden("The session is not authorized yet."));
    }
    let trace_id = trace_id.map_or_else(|| "".into(), |id| id.0.clone());
    Ok(Caller::new(holder, trace_id, client.map(|client| client.0)))
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
