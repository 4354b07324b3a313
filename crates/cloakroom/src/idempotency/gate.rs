//! The gate that lets a request with an idempotency key through once, and answers the others.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use cloakroom_crypto::random_bytes;
use futures_util::FutureExt as _;
use http::header::LOCATION;
use http_body_util::BodyExt as _;
use tracing::Instrument as _;

use super::lease::{self, Lease};
use super::request_key::{is_asked_once, key_of, request_mac, scope_of};
use super::store::{self, Answered};
use crate::api::{Answer, ApiError, Received};
use crate::caller::Caller;
use crate::ids::TenantId;
use crate::storage;
use crate::telemetry::ErrorCode;
use crate::vault::Vault;

/// How often each of the four things happened to requests with a key.
const ANSWERS: &str = "idempotency_answers_total";

/// Handles a request with a key to its end even if the client does not wait: its next attempt then gets
/// the answer, and not a conflict. The same goes for questions that can be asked once only, such as
/// whether a cardholder is who they say. Stands outside of all that a request takes and gives back.
#[expect(
    clippy::disallowed_methods,
    reason = "it outlives the connection on purpose, and its deadlines end it"
)]
pub async fn carry_through<F>(request: Request, next: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Response> + Send + 'static,
{
    let (method, path) = (request.method(), request.uri().path());
    let key = key_of(method, path, request.headers());
    if !matches!(key, Ok(Some(_))) && !is_asked_once(path) {
        return next(request).await;
    }
    match tokio::spawn(next(request).in_current_span()).await {
        Ok(response) => response,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => ApiError::internal("request_cancelled").into_response(),
        },
    }
}

/// Has a request with a key done once. Asked again, it gets the same answer for a day.
pub async fn answer_once<F>(
    vault: &Vault,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let asked = match asked(vault, &request) {
        Ok(Some(asked)) => asked,
        Ok(None) => return next(request).await,
        Err(error) => return error.into_response(),
    };
    // Boxed, because most requests have no such key.
    let answered = async {
        match take(vault, asked).await {
            Ok(Taken::Ours(caller, lease)) => {
                go_through(vault, (request, next), caller, &lease).await
            }
            Ok(Taken::Answered(answer)) => answer.into_response(),
            Err(error) => error.into_response(),
        }
    };
    Box::pin(answered).await
}

/// A request with a key.
struct Asked {
    caller: Arc<Caller>,
    scope: [u8; 32],
    request_mac: [u8; 32],
}

/// Nothing for requests without a key. Whoever needs a body that did not arrive fails, and gives the
/// lease back.
fn asked(vault: &Vault, request: &Request) -> Result<Option<Asked>, ApiError> {
    let extensions = request.extensions();
    let Some(caller) = extensions.get::<Arc<Caller>>() else {
        return Ok(None);
    };
    let (method, path) = (request.method(), request.uri().path());
    let Some(key) = key_of(method, path, request.headers())? else {
        return Ok(None);
    };
    let received = extensions.get::<Arc<Received>>();
    let body = received.and_then(|received| received.bytes());
    let control = vault.keys.control();
    let scope = scope_of(control, caller, method, path, key);
    Ok(Some(Asked {
        caller: caller.clone(),
        scope,
        request_mac: request_mac(control, &scope, body.unwrap_or_default()),
    }))
}

enum Taken {
    Ours(Arc<Caller>, Arc<Lease>),
    Answered(Answer),
}

/// Takes the lease in one round trip, or finds out why not.
async fn take(vault: &Vault, asked: Asked) -> Result<Taken, ApiError> {
    let tenant = asked.caller.tenant;
    let fence = i64::from_be_bytes(random_bytes());
    let seconds = vault.config.idempotency.lease.as_secs_f64();
    let keys = vault.keys.of(tenant).await?;
    let place = (tenant, &asked.scope);
    let (is_ours, answered) = match store::take(&vault.db, place, fence, seconds).await {
        Ok(taken) => taken,
        Err(error) => return Err(not_taken(vault, place, fence, error).await),
    };
    if let Some(answered) = answered {
        compare(vault, &asked, &answered)?;
        let answer = replay(vault, &asked.caller, &asked.scope, &answered).await?;
        return Ok(Taken::Answered(answer));
    }
    if !is_ours {
        return Err(still_running());
    }
    metrics::counter!(ANSWERS, "kind" => "first").increment(1);
    let lease = Arc::new(Lease {
        tenant,
        scope: asked.scope,
        fence,
        request_mac: asked.request_mac,
        keys,
        ended: AtomicBool::new(false),
    });
    let caller = asked.caller.with_lease(lease.clone());
    Ok(Taken::Ours(Arc::new(caller), lease))
}

/// The interface wants the first answer whatever the body says now. That is worth a line in the log,
/// and a refusal where the operator wants one.
fn compare(vault: &Vault, asked: &Asked, answered: &Answered) -> Result<(), ApiError> {
    if answered.request_mac == asked.request_mac {
        return Ok(());
    }
    metrics::counter!(ANSWERS, "kind" => "mismatch").increment(1);
    tracing::warn!(
        error.kind = "idempotency_mismatch",
        tenant.id = %asked.caller.tenant.uuid,
        application.id = %asked.caller.application,
        key.id = %asked.caller.key,
        "an idempotency key came again with another body"
    );
    match vault.config.idempotency.refuse_other_bodies {
        true => Err(ApiError::unprocessable(
            "This idempotency key was used before, with another body.",
        )),
        false => Ok(()),
    }
}

/// A lease that may have been taken is given back: nothing was begun under it.
async fn not_taken(
    vault: &Vault,
    place: (TenantId, &[u8; 32]),
    fence: i64,
    error: storage::Error,
) -> ApiError {
    if error.is_certain() {
        return error.into();
    }
    match store::release(&vault.db, place, fence).await {
        Ok((_, None)) => not_done(),
        Ok((_, Some(_))) | Err(_) => ApiError::outcome_unknown_but_safe(),
    }
}

/// Gives an answer again, once it is recorded who got what it shows.
async fn replay(
    vault: &Vault,
    caller: &Caller,
    scope: &[u8; 32],
    answered: &Answered,
) -> Result<Answer, ApiError> {
    let (answer, record) = lease::open(vault, (caller.tenant, scope), answered).await?;
    vault.audit.record_again(caller, &record).await?;
    metrics::counter!(ANSWERS, "kind" => "replayed").increment(1);
    Ok(answer)
}

fn still_running() -> ApiError {
    metrics::counter!(ANSWERS, "kind" => "conflict").increment(1);
    ApiError::conflict("The first request with this idempotency key is still being processed.")
        .retry_after(1)
}

async fn go_through<F>(
    vault: &Vault,
    (mut request, next): (Request, impl FnOnce(Request) -> F),
    caller: Arc<Caller>,
    lease: &Lease,
) -> Response
where
    F: Future<Output = Response>,
{
    request.extensions_mut().insert(caller.clone());
    match AssertUnwindSafe(next(request)).catch_unwind().await {
        Ok(response) => settle(vault, &caller, lease, response).await,
        Err(panic) => {
            let place = (lease.tenant, &lease.scope);
            // Whoever finds out what became of it is told that something went wrong.
            let _ = store::release(&vault.db, place, lease.fence).await;
            resume_unwind(panic)
        }
    }
}

/// Whatever happened, the answer that leaves is the only one that this key will get, or the key is free.
async fn settle(vault: &Vault, caller: &Caller, lease: &Lease, response: Response) -> Response {
    if !response.status().is_success() {
        return give_back(vault, caller, lease, response).await;
    }
    if lease.is_ended() {
        return response;
    }
    match keep(vault, lease, response).await {
        Ok(response) => response,
        // Nothing was changed, so the next attempt may do the same again.
        Err(error) => give_back(vault, caller, lease, error.into_response()).await,
    }
}

/// Keeps the answer to a request that changed nothing.
async fn keep(vault: &Vault, lease: &Lease, response: Response) -> Result<Response, ApiError> {
    metrics::counter!("idempotency_kept_alone_total").increment(1);
    let (head, body) = response.into_parts();
    let body = body.collect().await;
    let body = body
        .map_err(|_| ApiError::internal("answer_lost"))?
        .to_bytes();
    let location = head.headers.get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok().map(str::to_owned));
    let answer = Answer::new(head.status, location, body.to_vec());
    let response = Response::from_parts(head, body.into());
    let row = lease.row(&answer, &[], None);
    let row = row.map_err(|_| ApiError::internal("answer_not_kept"))?;
    store::keep(&vault.db, &[row]).await?;
    Ok(response)
}

/// After a failure. Once the lease is given back, what may still be on its way under it cannot happen
/// any more: either it has, and then its answer is there, or it never will.
async fn give_back(vault: &Vault, caller: &Caller, lease: &Lease, response: Response) -> Response {
    let place = (lease.tenant, &lease.scope);
    let released = match store::release(&vault.db, place, lease.fence).await {
        // Somebody ended it before us, perhaps only just now.
        Ok((false, None)) => store::find(&vault.db, place)
            .await
            .map(|found| (false, found)),
        released => released,
    };
    let is_unknown = response.extensions().get::<ErrorCode>() == Some(&ErrorCode::OUTCOME_UNKNOWN);
    match released {
        Ok((_, Some(answered))) => match replay(vault, caller, &lease.scope, &answered).await {
            Ok(answer) => answer.into_response(),
            Err(error) => error.into_response(),
        },
        Ok((true, None)) if is_unknown => not_done().into_response(),
        Ok((true, None)) => response,
        Ok((false, None)) => still_running().into_response(),
        Err(_) if is_unknown => ApiError::outcome_unknown_but_safe().into_response(),
        Err(_) => response,
    }
}

fn not_done() -> ApiError {
    ApiError::unavailable(
        "database_unavailable",
        "The database did not answer in time, and nothing was changed.",
    )
}
