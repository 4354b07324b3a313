//! Middleware that executes a request with an idempotency key once, and replays the stored response
//! to retries.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use cloakroom_crypto::{Request, random_bytes};
use cloakroom_platform::api::{Answer, ApiError, Received};
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::ErrorCode;
use cloakroom_platform::telemetry::catalog;
use futures_util::FutureExt as _;
use http::header::LOCATION;
use http_body_util::BodyExt as _;
use tracing::Instrument as _;

use crate::caller::Caller;
use crate::idempotency::lease::{self, Lease};
use crate::idempotency::request_key::{
    GrantsDigest, RequestKey, grants_digest, idempotency_key, is_single_use, request_mac, scope_of,
};
use crate::idempotency::{self, SealedResponse};
use crate::keys::{DigestKey, TenantKeys};
use crate::vault::Vault;

/// Runs a request with a key to completion even if the client disconnects: its retry then gets the
/// response instead of a conflict. The same holds for operations that can be requested only once,
/// such as the authentication of a cardholder. Wraps all middleware that acquires and releases
/// resources for a request.
#[expect(
    clippy::disallowed_methods,
    reason = "the request outlives the connection on purpose; its deadlines end it"
)]
pub async fn run_to_completion<F>(
    request: HttpRequest,
    next: impl FnOnce(HttpRequest) -> F,
) -> Response
where
    F: Future<Output = Response> + Send + 'static,
{
    let (method, path) = (request.method(), request.uri().path());
    let key = idempotency_key(method, path, request.headers());
    if !matches!(key, Ok(Some(_))) && !is_single_use(path) {
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

/// Executes a request with a key once, and replays its response to retries for a day.
pub async fn execute_once<F>(
    vault: &Vault,
    request: HttpRequest,
    next: impl FnOnce(HttpRequest) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let caller = match keyed_caller(&request) {
        Ok(Some(caller)) => caller,
        Ok(None) => return next(request).await,
        Err(error) => return error.into_response(),
    };
    // Boxed, because most requests have no idempotency key.
    let response = async {
        let keys = match vault.keys.of(caller.tenant).await {
            Ok(keys) => keys,
            Err(error) => return ApiError::from(error).into_response(),
        };
        let keyed = match keyed_request(&request, caller, keys) {
            Ok(Some(keyed)) => keyed,
            Ok(None) => return next(request).await,
            Err(error) => return error.into_response(),
        };
        match acquire(vault, keyed).await {
            Ok(AcquireResult::Lease(caller, lease)) => {
                execute(vault, caller, &lease, request, next).await
            }
            Ok(AcquireResult::Response(response)) => response.into_response(),
            Err(error) => error.into_response(),
        }
    };
    Box::pin(response).await
}

/// A request with a key.
struct KeyedRequest {
    caller: Arc<Caller>,
    keys: Arc<TenantKeys>,
    /// One for each version of the tenant's key, the oldest first. Leases are acquired in this order under all of them:
    /// nodes that know different versions have one in common.
    scopes: Vec<Scope>,
}

/// What identifies a request with a key under one version of the tenant's key.
struct Scope {
    key: RequestKey,
    request_mac: [u8; 32],
    grants: GrantsDigest,
    /// Whether the response is stored under this version.
    is_active: bool,
}

/// The caller of a request with a key.
fn keyed_caller(request: &HttpRequest) -> Result<Option<Arc<Caller>>, ApiError> {
    let Some(caller) = request.extensions().get::<Arc<Caller>>() else {
        return Ok(None);
    };
    let (method, path) = (request.method(), request.uri().path());
    let key = idempotency_key(method, path, request.headers())?;
    Ok(key.map(|_| caller.clone()))
}

/// The request's key, if it has one. A handler that needs a body that did not arrive fails, and the
/// lease is released.
fn keyed_request(
    request: &HttpRequest,
    caller: Arc<Caller>,
    keys: Arc<TenantKeys>,
) -> Result<Option<KeyedRequest>, ApiError> {
    let (method, path) = (request.method(), request.uri().path());
    let Some(key) = idempotency_key(method, path, request.headers())? else {
        return Ok(None);
    };
    let received = request.extensions().get::<Arc<Received>>();
    let body = received.and_then(|received| received.bytes());
    let scope = |version: &DigestKey<Request>| {
        let scope = scope_of(version, &caller, method, path, key);
        Scope {
            key: RequestKey {
                tenant: caller.tenant,
                scope,
            },
            request_mac: request_mac(version, &scope, body.unwrap_or_default()),
            grants: grants_digest(version, &caller),
            is_active: version.is_active(),
        }
    };
    let scopes = keys.request_versions().iter().map(scope).collect();
    Ok(Some(KeyedRequest {
        caller,
        keys,
        scopes,
    }))
}

enum AcquireResult {
    Lease(Arc<Caller>, Arc<Lease>),
    Response(Answer),
}

/// Acquires the lease in one round trip, or determines why it cannot. While the tenant's key is replaced, there is one
/// lease, and one round trip, for each version.
async fn acquire(vault: &Vault, keyed: KeyedRequest) -> Result<AcquireResult, ApiError> {
    let fence = i64::from_be_bytes(random_bytes());
    let acquired_at = vault.clock.now().await?;
    let mut leases = Leases {
        vault,
        fence,
        taken: Vec::new(),
        is_free: true,
    };
    for scope in &keyed.scopes {
        if let Some(stored) = leases.take(&scope.key).await? {
            leases.release().await;
            return respond(vault, &keyed.caller, scope, &stored).await;
        }
    }
    for scope in keyed.scopes.iter().filter(|scope| !scope.is_active) {
        if let Some(stored) = leases.find_again(&scope.key).await? {
            leases.release().await;
            return respond(vault, &keyed.caller, scope, &stored).await;
        }
    }
    let active = keyed.scopes.iter().find(|scope| scope.is_active);
    let (true, Some(active)) = (leases.is_free, active) else {
        leases.release().await;
        return Err(still_running());
    };
    catalog::IDEMPOTENT_REQUESTS.with(["first"]).increment(1);
    let others = keyed.scopes.iter().filter(|scope| !scope.is_active);
    let lease = Arc::new(Lease {
        key: active.key,
        others: others.map(|scope| scope.key).collect(),
        fence,
        acquired_at,
        request_mac: active.request_mac,
        grants: active.grants,
        keys: Mutex::new(keyed.keys),
        ended: AtomicBool::new(false),
    });
    let caller = keyed.caller.with_lease(lease.clone());
    Ok(AcquireResult::Lease(Arc::new(caller), lease))
}

/// Replays the response that is stored under a scope.
async fn respond(
    vault: &Vault,
    caller: &Caller,
    scope: &Scope,
    stored: &SealedResponse,
) -> Result<AcquireResult, ApiError> {
    compare(vault, caller, &scope.request_mac, stored)?;
    let response = replay(vault, caller, &scope.key, &scope.grants, stored).await?;
    Ok(AcquireResult::Response(response))
}

/// The leases of a request that is being started.
struct Leases<'a> {
    vault: &'a Vault,
    fence: i64,
    taken: Vec<RequestKey>,
    /// False once another request holds one of them: then no more are taken, but a response may be stored.
    is_free: bool,
}

impl Leases<'_> {
    /// Takes a lease, or returns the stored response.
    async fn take(&mut self, key: &RequestKey) -> Result<Option<SealedResponse>, ApiError> {
        let db = &self.vault.db;
        if !self.is_free {
            return Ok(idempotency::find_response(db, key).await?);
        }
        let seconds = self.vault.config.idempotency.lease.as_secs_f64();
        match idempotency::acquire(db, key, self.fence, seconds).await {
            Ok((true, stored)) => {
                self.taken.push(*key);
                Ok(stored)
            }
            Ok((false, stored)) => {
                self.is_free = stored.is_some();
                Ok(stored)
            }
            Err(error) => {
                self.release().await;
                Err(release_after_failure(self.vault, key, self.fence, error).await)
            }
        }
    }

    /// Looks for the response under a version that is not the active one, with its lease taken.
    ///
    /// The statement that takes a lease does not see a response whose commit it waited for. Under the active version, the
    /// response of this request then conflicts with that one when it is stored. Under another version nothing conflicts.
    async fn find_again(&self, key: &RequestKey) -> Result<Option<SealedResponse>, ApiError> {
        if !self.is_free {
            return Ok(None);
        }
        let found = idempotency::find_response(&self.vault.db, key).await;
        if found.is_err() {
            self.release().await;
        }
        Ok(found?)
    }

    async fn release(&self) {
        release_all(self.vault, &self.taken, self.fence).await;
    }
}

/// Releases leases under which nothing is stored. One that cannot be released expires.
async fn release_all(vault: &Vault, keys: &[RequestKey], fence: i64) {
    for key in keys {
        let _ = idempotency::release(&vault.db, key, fence).await;
    }
}

/// The interface requires the first response, even if the body differs now. This is logged, and
/// rejected if the operator has configured so.
///
/// A public key is known to everyone, so a guessed idempotency key would return another client's
/// response: with a public key, a different body is always rejected.
fn compare(
    vault: &Vault,
    caller: &Caller,
    request_mac: &[u8],
    stored: &SealedResponse,
) -> Result<(), ApiError> {
    if stored.request_mac == request_mac {
        return Ok(());
    }
    catalog::IDEMPOTENT_REQUESTS.with(["mismatch"]).increment(1);
    tracing::warn!(
        error.kind = "idempotency_mismatch",
        tenant.id = %caller.tenant.uuid,
        application.id = %caller.application,
        key.id = %caller.key,
        "an idempotency key was reused with a different body"
    );
    match vault.config.idempotency.refuse_other_bodies || caller.is_public_key() {
        true => Err(ApiError::unprocessable(
            "This idempotency key was already used with a different request body.",
        )),
        false => Ok(()),
    }
}

/// Releases a lease that may have been acquired: nothing was started under it.
async fn release_after_failure(
    vault: &Vault,
    key: &RequestKey,
    fence: i64,
    error: storage::Error,
) -> ApiError {
    if error.is_certain() {
        return error.into();
    }
    match idempotency::release(&vault.db, key, fence).await {
        Ok((_, None)) => not_done(),
        Ok((_, Some(_))) | Err(_) => ApiError::outcome_unknown_but_safe(),
    }
}

/// Replays a stored response to a caller with the same permissions, after recording the read in the
/// audit log.
async fn replay(
    vault: &Vault,
    caller: &Caller,
    key: &RequestKey,
    grants: &GrantsDigest,
    stored: &SealedResponse,
) -> Result<Answer, ApiError> {
    let opened = lease::open(&vault.keys, key, stored).await?;
    if opened.grants != *grants {
        catalog::IDEMPOTENT_REQUESTS
            .with(["grants_changed"])
            .increment(1);
        return Err(ApiError::conflict(
            "The request with this idempotency key was processed when the key had other permissions. \
             Its response is not repeated; read the resource instead.",
        ));
    }
    vault.audit.record_replay(caller, &opened.record).await?;
    catalog::IDEMPOTENT_REQUESTS.with(["replayed"]).increment(1);
    Ok(opened.response)
}

fn still_running() -> ApiError {
    catalog::IDEMPOTENT_REQUESTS.with(["conflict"]).increment(1);
    ApiError::conflict("The first request with this idempotency key is still being processed.")
        .retry_after(1)
}

async fn execute<F>(
    vault: &Vault,
    caller: Arc<Caller>,
    lease: &Lease,
    mut request: HttpRequest,
    next: impl FnOnce(HttpRequest) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    request.extensions_mut().insert(caller.clone());
    let outcome = AssertUnwindSafe(next(request)).catch_unwind().await;
    let response = match outcome {
        Ok(response) => finish(vault, &caller, lease, response).await,
        Err(panic) => {
            // A retry gets an error if the release fails.
            let _ = idempotency::release(&vault.db, &lease.key, lease.fence).await;
            release_all(vault, &lease.others, lease.fence).await;
            resume_unwind(panic)
        }
    };
    // After the response is stored: a retry that finds one of these free finds the response.
    release_all(vault, &lease.others, lease.fence).await;
    response
}

/// Stores the response as the only one for this key, or releases the key.
async fn finish(vault: &Vault, caller: &Caller, lease: &Lease, response: Response) -> Response {
    if !response.status().is_success() {
        return release(vault, caller, lease, response).await;
    }
    if lease.is_ended() {
        return response;
    }
    match store_response(vault, lease, response).await {
        Ok(response) => response,
        // Nothing was changed, so a retry may execute the request again.
        Err(error) => release(vault, caller, lease, error.into_response()).await,
    }
}

/// Stores the response to a request that changed nothing.
async fn store_response(
    vault: &Vault,
    lease: &Lease,
    response: Response,
) -> Result<Response, ApiError> {
    catalog::IDEMPOTENT_RESPONSES_STORED.increment(1);
    let (head, body) = response.into_parts();
    let body = body.collect().await;
    let body = body
        .map_err(|_| ApiError::internal("response_lost"))?
        .to_bytes();
    let location = head.headers.get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok().map(str::to_owned));
    let answer = Answer::new(head.status, location, body.to_vec());
    let response = Response::from_parts(head, body.into());
    let row = || {
        let row = lease.row(&answer, &[], None);
        row.map_err(|_| ApiError::internal("response_not_stored"))
    };
    let mut stored = idempotency::store_response(&vault.db, &[row()?]).await;
    if matches!(stored, Err(storage::Error::StaleKey)) {
        vault.keys.replace_stale(lease.key.tenant).await;
        lease.use_keys(&vault.keys.of(lease.key.tenant).await?);
        stored = idempotency::store_response(&vault.db, &[row()?]).await;
    }
    stored?;
    Ok(response)
}

/// Releases the lease after a failure. A write that is still in flight under the lease either has
/// committed, and then its response is stored, or can no longer commit.
async fn release(vault: &Vault, caller: &Caller, lease: &Lease, response: Response) -> Response {
    let released = match idempotency::release(&vault.db, &lease.key, lease.fence).await {
        // The lease ended earlier, perhaps only just now.
        Ok((false, None)) => idempotency::find_response(&vault.db, &lease.key)
            .await
            .map(|found| (false, found)),
        released => released,
    };
    let is_unknown = response.extensions().get::<ErrorCode>() == Some(&ErrorCode::OUTCOME_UNKNOWN);
    match released {
        Ok((_, Some(stored))) => {
            match replay(vault, caller, &lease.key, &lease.grants, &stored).await {
                Ok(response) => response.into_response(),
                Err(error) => error.into_response(),
            }
        }
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
        "The database did not respond in time. Nothing was changed; retry the request.",
    )
}
