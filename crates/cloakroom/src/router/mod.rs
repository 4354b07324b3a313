//! Every route of the service, and the gates in front of them.

mod map;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRef as _, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use tower_http::normalize_path::NormalizePath;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use self::map::{Entrance, Map, Met};
use crate::access::gate::Source;
use crate::api::{ApiError, BodyLimits, receive_body};
use crate::openapi::DocumentText;
use crate::vault::Vault;
use crate::{
    access, applications, audit, client_encryption, deprecations, enrichments, formulas,
    idempotency, members, openapi, rate_limits, reports, sessions, telemetry, tenants, threeds,
    threeds_browser, token_documents, token_intents, token_queries, tokens,
};

/// Routes that anyone may ask.
fn open_routes() -> OpenApiRouter<Vault> {
    openapi::routes().merge(threeds_browser::routes())
}

/// Routes that need a key, and tell everybody the same.
fn catalog_routes() -> OpenApiRouter<Vault> {
    formulas::routes()
}

/// Routes that need a key, and change or tell what a tenant keeps.
fn keyed_routes() -> OpenApiRouter<Vault> {
    tokens::routes()
        .merge(token_queries::routes())
        .merge(token_documents::routes())
        .merge(token_intents::routes())
        .merge(applications::routes())
        .merge(enrichments::routes())
        .merge(sessions::routes())
        .merge(audit::routes())
        .merge(client_encryption::routes())
        .merge(tenants::routes())
        .merge(members::routes())
        .merge(reports::routes())
        .merge(threeds::routes())
        .merge(deprecations::routes())
}

/// The description of every route.
pub fn document() -> OpenApi {
    let keyed = keyed_routes().merge(catalog_routes());
    openapi::document(open_routes().into_openapi(), keyed.into_openapi())
}

/// The description as text.
pub fn document_text() -> DocumentText {
    DocumentText::new(&document())
}

/// The API, ready to be served. `/tokens/` is `/tokens`.
#[expect(
    clippy::expect_used,
    reason = "two handlers for one path are a mistake in the code, found by any test"
)]
pub fn api(vault: Vault) -> NormalizePath<Api> {
    let (open, about_open) = open_routes().split_for_parts();
    let (keyed, about_keyed) = keyed_routes().split_for_parts();
    let (catalog, about_catalog) = catalog_routes().split_for_parts();
    let map = Map::new(
        vault.config.http.prefix(),
        &[
            (Entrance::Open, about_open),
            (Entrance::Keyed(Source::Primary), about_keyed),
            (Entrance::Keyed(Source::AnyServer), about_catalog),
        ],
    );
    let handlers = open
        .layer(Extension(document_text()))
        .merge(keyed)
        .merge(catalog)
        .with_state(vault.clone());
    let api = Api(Arc::new(Inner {
        map: map.expect("each path stands in the map once"),
        handlers,
        cors: cors(),
        recorder: telemetry::Recorder::default(),
        vault,
    }));
    NormalizePath::trim_trailing_slash(api)
}

/// Finds the route of a request, has it pass what stands in front of that, and calls its handler.
///
/// All of this is one future rather than a layer for each gate: a layer costs every request an allocation, a
/// copy of all that lies inside of it, and a move of its whole future.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    vault: Vault,
    map: Map,
    handlers: axum::Router,
    cors: CorsLayer,
    recorder: telemetry::Recorder,
}

impl Service<http::Request<Incoming>> for Api {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let api = Arc::clone(&self.0);
        Box::pin(async move { Ok(api.answer(request.map(Body::new)).await) })
    }
}

impl Inner {
    async fn answer(&self, mut request: Request) -> Response {
        let is_head = request.method() == Method::HEAD;
        let met = self.map.find(&mut request);
        if let Some(route) = met.route() {
            request.extensions_mut().insert(route.clone());
        }
        let name = met.route().map(|route| Arc::clone(&route.0));
        let enter = |request| self.tell_browsers(met, request);
        let response = self.recorder.record(name, request, enter).await;
        match is_head {
            true => without_body(response),
            false => response,
        }
    }

    /// Browsers say which site they ask from, and are told that it may. Nobody else needs to know.
    async fn tell_browsers(&self, met: Met<'_>, request: Request) -> Response {
        if !request.headers().contains_key(header::ORIGIN) {
            return self.enter(met, request).await;
        }
        let inside = service_fn(|request| self.enter(met, request).map(Ok::<_, Infallible>));
        let Ok(response) = Box::pin(self.cors.layer(inside).oneshot(request)).await;
        response
    }

    /// What every request passes first. A panic ends one request, and nothing else.
    async fn enter(&self, met: Met<'_>, request: Request) -> Response {
        let pass = |request| self.pass_gates(met, request);
        let entered = rate_limits::gate::guard_addresses(&self.vault, request, pass);
        let entered = AssertUnwindSafe(entered).catch_unwind().await;
        entered.unwrap_or_else(|_| panic_answer())
    }

    /// What stands in front of the handler, from the outside in.
    async fn pass_gates(&self, met: Met<'_>, request: Request) -> Response {
        let vault = &self.vault;
        match met {
            Met::Nothing => ApiError::not_found("There is no such path.").into_response(),
            Met::Path(_, allowed) => {
                let allowed = [(header::ALLOW, allowed.clone())];
                (allowed, ApiError::method_not_allowed()).into_response()
            }
            Met::Handler(_, Entrance::Open) => self.pass_open_gates(request).await,
            Met::Handler(_, Entrance::Keyed(source)) => {
                access::gate::require_key(vault, source, request, |request| {
                    deprecations::gate::tell_and_count(vault, request, |request| {
                        self.pass_open_gates(request)
                    })
                })
                .await
            }
        }
    }

    /// The same for a request that needs no key.
    async fn pass_open_gates(&self, request: Request) -> Response {
        rate_limits::gate::count(&self.vault, request, async |request| {
            let request = receive_body(BodyLimits::from_ref(&self.vault), request).await;
            let (vault, handlers) = (self.vault.clone(), self.handlers.clone());
            idempotency::carry_through(request, |request| run(vault, handlers, request)).await
        })
        .await
    }
}

/// What is taken for a request and given back. Without a caller there is nothing to take.
async fn run(vault: Vault, handlers: axum::Router, request: Request) -> Response {
    rate_limits::gate::take_turns(&vault, request, |request| {
        idempotency::answer_once(&vault, request, |request| call(handlers, request))
    })
    .await
}

async fn call(mut handlers: axum::Router, request: Request) -> Response {
    let Ok(response) = handlers.call(request).await;
    response
}

/// Who asks for the head alone learns how long the rest would be.
fn without_body(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        let length = HeaderValue::from(length);
        head.headers.entry(header::CONTENT_LENGTH).or_insert(length);
    }
    Response::from_parts(head, Body::empty())
}

/// The panic hook has logged where; the client learns only that something went wrong.
fn panic_answer() -> Response {
    ApiError::internal("panic").into_response()
}

/// Public keys are used from browsers, on any site.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed_headers())
}

fn exposed_headers() -> Vec<HeaderName> {
    let own = [
        HeaderName::from_static("bt-trace-id"),
        header::ETAG,
        header::LOCATION,
        header::RETRY_AFTER,
    ];
    own.into_iter()
        .chain(rate_limits::HEADERS)
        .chain(deprecations::gate::HEADERS)
        .collect()
}
