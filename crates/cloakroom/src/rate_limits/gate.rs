//! What requests pass because there may be too many of them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::Method;

use super::admit::{admit, refuse_known};
use super::asked::{Asked, AskedKey};
use super::verdict::Verdict;
use crate::api::{ApiError, ClientAddr, Route};
use crate::caller::Caller;
use crate::turnstile::Busy;
use crate::vault::Vault;

/// A request that was counted with all that is known of it. Found in the extensions of its response.
#[derive(Clone, Copy)]
struct IsCounted;

/// Stands in front of everything. Turns addresses away that are known to be blocked, before any key is
/// looked up, and counts the requests that nobody inside has counted: without a valid key, or to no route.
pub async fn guard_addresses<F>(
    vault: &Vault,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    if vault.rate_limits.table.is_none() {
        return next(request).await;
    }
    let (method, route) = (
        request.method().clone(),
        request.extensions().get::<Route>().cloned(),
    );
    let asked = Asked {
        method: method_text(&method),
        route: route.as_ref().map_or("", |Route(template)| template),
        address: address_of(&request),
        key: None,
        proxy: None,
    };
    if let Some(verdict) = refuse_known(vault, &asked).await {
        return refusal(vault, &verdict).await;
    }
    let leaving = Leaving {
        vault,
        asked: Some(asked),
    };
    let mut response = next(request).await;
    leaving.stayed();
    if response.extensions_mut().remove::<IsCounted>().is_some() {
        return response;
    }
    match admit(vault, &asked).await {
        Some(verdict) if verdict.is_refused => refusal(vault, &verdict).await,
        Some(verdict) => {
            verdict.write(response.headers_mut());
            response
        }
        None => response,
    }
}

/// A request that nobody has counted yet. Who leaves before the answer is counted by its address.
struct Leaving<'a> {
    vault: &'a Vault,
    asked: Option<Asked<'a>>,
}

impl Leaving<'_> {
    fn stayed(mut self) {
        self.asked = None;
    }
}

impl Drop for Leaving<'_> {
    #[expect(
        clippy::disallowed_methods,
        reason = "who left does not wait for being counted, and Redis ends it in time"
    )]
    fn drop(&mut self) {
        let Some(Asked { address, .. }) = self.asked else {
            return;
        };
        let vault = self.vault.clone();
        tokio::spawn(async move {
            let asked = Asked {
                method: "",
                route: "",
                address,
                key: None,
                proxy: None,
            };
            admit(&vault, &asked).await;
        });
    }
}

/// Stands behind the look-up of the key and in front of the body: counts the request, or refuses it.
pub async fn count<F>(vault: &Vault, request: Request, next: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Response>,
{
    if vault.rate_limits.table.is_none() {
        return next(request).await;
    }
    let verdict = {
        let asked = Asked {
            method: method_text(request.method()),
            route: Route::of(request.extensions()),
            address: address_of(&request),
            key: key_of(&request),
            proxy: None,
        };
        admit(vault, &asked).await
    };
    let mut response = match &verdict {
        Some(verdict) if verdict.is_refused => refusal(vault, verdict).await,
        _ => next(request).await,
    };
    if let Some(verdict) = &verdict {
        verdict.write(response.headers_mut());
    }
    response.extensions_mut().insert(IsCounted);
    response
}

/// Stands right in front of the handlers: lets a bounded number of requests run, fairly between tenants.
pub async fn take_turns<F>(
    vault: &Vault,
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
    if waits_for_others(route) {
        return next(request).await;
    }
    let limits = &vault.rate_limits;
    let turnstile = match shares_statements(request.method(), route) {
        true => &limits.wide_turnstile,
        false => &limits.turnstile,
    };
    match turnstile.enter(caller.tenant.number).await {
        Ok(_place) => next(request).await,
        Err(Busy) => {
            metrics::counter!("turnstile_busy_total").increment(1);
            let detail = "This node has too much to do for the tenant. Try again in a moment.";
            ApiError::unavailable("busy", detail).into_response()
        }
    }
}

/// Creates and reads of single tokens, which are most of what a vault is asked for.
fn shares_statements(method: &Method, route: &str) -> bool {
    matches!(
        (method, route),
        (&Method::GET, "/tokens/{id}") | (&Method::POST, "/tokens")
    )
}

/// Places are for work of this node. Who waits for a card network for seconds holds none, and is
/// bounded where it waits.
fn waits_for_others(route: &str) -> bool {
    route.starts_with("/3ds/")
}

async fn refusal(vault: &Vault, verdict: &Verdict) -> Response {
    let error = ApiError::too_many("rate_limited", verdict.detail(), verdict.wait);
    let mut response = error.into_response();
    verdict.write(response.headers_mut());
    // Without the database there is no time to tell; how long to wait stands in `Retry-After`.
    if let Ok(now) = vault.audit.now().await {
        verdict.write_reset(now, response.headers_mut());
    }
    response
}

/// A request for the head of an answer costs as much as one for all of it.
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

fn key_of(request: &Request) -> Option<AskedKey> {
    let caller = request.extensions().get::<Arc<Caller>>()?;
    Some(AskedKey {
        id: caller.key,
        tenant: caller.tenant_kind,
        application: caller.application_kind,
        is_legacy: caller.is_legacy,
        rate_limit: caller.quotas.rate_limit,
    })
}
