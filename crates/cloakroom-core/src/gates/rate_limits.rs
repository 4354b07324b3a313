//! Middleware that limits the rate and concurrency of requests.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use cloakroom_platform::admission::{Overloaded, Permit};
use cloakroom_platform::api::{ApiError, ClientAddr, Route};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use http::Method;

use crate::caller::Caller;
use crate::rate_limits::{
    Decision, KeyInfo, OpenProxyKey, Proxy, RateLimits, RequestInfo, admit, reject_known,
};

/// Marks the response to a request that was counted with its key, in its extensions.
#[derive(Clone, Copy)]
struct IsCounted;

/// The outermost rate limit. Rejects addresses that are known to be blocked before any key is
/// looked up, and counts requests that no inner middleware has counted: those without a valid key
/// or route.
pub async fn limit_addresses<F>(
    limits: &Arc<RateLimits>,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    if !limits.is_enabled() {
        return next(request).await;
    }
    let (method, route) = (
        request.method().clone(),
        request.extensions().get::<Route>().cloned(),
    );
    let info = RequestInfo {
        method: method_text(&method),
        route: route.as_ref().map_or("", |Route(template)| template),
        address: address_of(&request),
        key: None,
        proxy: None,
    };
    if let Some(decision) = reject_known(limits, &info).await {
        return rejection(limits, &decision).await;
    }
    let guard = DisconnectGuard {
        limits,
        info: Some(info),
    };
    let mut response = next(request).await;
    guard.disarm();
    if response.extensions_mut().remove::<IsCounted>().is_some() {
        return response;
    }
    match admit(limits, &info).await {
        Some(decision) if decision.is_rejected => rejection(limits, &decision).await,
        Some(decision) => {
            decision.write(response.headers_mut());
            response
        }
        None => response,
    }
}

/// Counts a request by its address if the client disconnects before the response.
struct DisconnectGuard<'a> {
    limits: &'a Arc<RateLimits>,
    info: Option<RequestInfo<'a>>,
}

impl DisconnectGuard<'_> {
    fn disarm(mut self) {
        self.info = None;
    }
}

impl Drop for DisconnectGuard<'_> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the client has disconnected; the timeout of Redis bounds the task"
    )]
    fn drop(&mut self) {
        let Some(RequestInfo { address, .. }) = self.info else {
            return;
        };
        let limits = self.limits.clone();
        tokio::spawn(async move {
            let info = RequestInfo {
                method: "",
                route: "",
                address,
                key: None,
                proxy: None,
            };
            admit(&limits, &info).await;
        });
    }
}

/// Runs after authentication and before the body is read: counts the request, or rejects it.
pub async fn limit_rate<F>(
    limits: &Arc<RateLimits>,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    if !limits.is_enabled() {
        return next(request).await;
    }
    let decision = {
        let info = RequestInfo {
            method: method_text(request.method()),
            route: Route::of(request.extensions()),
            address: address_of(&request),
            key: key_of(&request),
            proxy: open_proxy_of(&request),
        };
        admit(limits, &info).await
    };
    let mut response = match &decision {
        Some(decision) if decision.is_rejected => rejection(limits, decision).await,
        _ => next(request).await,
    };
    if let Some(decision) = &decision {
        decision.write(response.headers_mut());
    }
    response.extensions_mut().insert(IsCounted);
    response
}

/// The last middleware before the handlers: limits the concurrency of requests, fairly between
/// tenants.
pub async fn limit_concurrency<F>(
    limits: &Arc<RateLimits>,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let Some(caller) = request.extensions().get::<Arc<Caller>>() else {
        return next(request).await;
    };
    let route = Route::of(request.extensions());
    if waits_for_card_network(route) {
        return next(request).await;
    }
    let semaphore = match is_batched(request.method(), route) {
        true => &limits.batched_admission,
        false => &limits.admission,
    };
    match semaphore.acquire(caller.tenant.number).await {
        Ok(_permit) => next(request).await,
        Err(overloaded) => busy(overloaded).into_response(),
    }
}

/// Admits the part of a request that works on this node, for requests that then wait for another server without a
/// permit. `is_batched` says whether its statements are shared with concurrent requests.
pub async fn admit_work(
    limits: &RateLimits,
    tenant: TenantId,
    is_batched: bool,
) -> Result<Permit, ApiError> {
    let semaphore = match is_batched {
        true => &limits.batched_admission,
        false => &limits.admission,
    };
    semaphore.acquire(tenant.number).await.map_err(busy)
}

fn busy(_: Overloaded) -> ApiError {
    catalog::ADMISSION_REJECTED.increment(1);
    let detail = "This node is processing too many requests of the tenant. Retry later.";
    ApiError::unavailable("busy", detail)
}

/// Creates and reads of single tokens, the most frequent requests.
fn is_batched(method: &Method, route: &str) -> bool {
    matches!(
        (method, route),
        (&Method::GET, "/tokens/{id}") | (&Method::POST, "/tokens")
    )
}

/// Permits are for work on this node. A request that waits for a card network for seconds holds
/// none; its concurrency is limited where it waits.
fn waits_for_card_network(route: &str) -> bool {
    route.starts_with("/3ds/")
}

async fn rejection(limits: &RateLimits, decision: &Decision) -> Response {
    let error = ApiError::too_many("rate_limited", decision.detail(), decision.wait);
    let mut response = error.into_response();
    decision.write(response.headers_mut());
    // Without the database the current time is unknown; `Retry-After` has the wait.
    if let Ok(now) = limits.vault.clock.now().await {
        decision.write_reset(now, response.headers_mut());
    }
    response
}

/// A HEAD request costs as much as a GET request.
fn method_text(method: &Method) -> &str {
    match *method {
        Method::HEAD => Method::GET.as_str(),
        _ => method.as_str(),
    }
}

fn address_of(request: &Request) -> IpAddr {
    let client = request.extensions().get::<ClientAddr>();
    client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| client.0)
}

fn open_proxy_of(request: &Request) -> Option<(Proxy, &str)> {
    let OpenProxyKey(key) = request.extensions().get()?;
    Some((Proxy::Open, key))
}

fn key_of(request: &Request) -> Option<KeyInfo> {
    let caller = request.extensions().get::<Arc<Caller>>()?;
    Some(KeyInfo {
        id: caller.key,
        tenant: caller.tenant_kind,
        application: caller.application_kind,
        is_legacy: caller.is_legacy,
        rate_limit: caller.quotas.rate_limit,
    })
}
