//! All routes of the service, and the middleware in front of them.

mod route_table;
mod unsupported;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use cloakroom_core::gates::authentication::{self, KeyLookup};
use cloakroom_core::vault::Vault;
use cloakroom_core::{gates, rate_limits};
use cloakroom_pages::page::ErrorPages;
use cloakroom_platform::api::{ApiError, BodyLimits, Route, complete_problem, receive_body};
use cloakroom_platform::config::BaseUrl;
use cloakroom_platform::telemetry::{self, TraceId};
use cloakroom_proxy::ProxyServer;
use cloakroom_proxy::invoke::{self, InvocationPath};
use cloakroom_threeds::ThreedsServer;
use cloakroom_tokens::TokenVault;
use cloakroom_webhooks::WebhookServer;
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use self::route_table::{Authentication, RouteMatch, RouteTable};
use crate::node::Node;
use crate::openapi::{DocumentSource, DocumentText};
use crate::{formulas, openapi, removed_operations};

/// Maximum body size without a key: more than any browser posts back from an issuer.
const OPEN_BODY_BYTES_MAX: usize = 64 * 1024;

/// The routes of every area. The only list: the document and the served routers are both made of it.
struct Routes {
    /// Without a key if the proxy is open.
    invocations: OpenApiRouter<ProxyServer>,
    /// Without authentication.
    open: OpenApiRouter<ThreedsServer>,
    open_webhooks: OpenApiRouter<WebhookServer>,
    /// Without authentication, or with a public key in the URL.
    elements: OpenApiRouter<TokenVault>,
    /// Without authentication, or with a secret in the URL.
    open_pages: OpenApiRouter<TokenVault>,
    /// Require a key, and read or change data of a tenant.
    tokens: OpenApiRouter<TokenVault>,
    management: OpenApiRouter<Vault>,
    pages: OpenApiRouter<TokenVault>,
    threeds: OpenApiRouter<ThreedsServer>,
    proxies: OpenApiRouter<ProxyServer>,
    webhooks: OpenApiRouter<WebhookServer>,
    removed: OpenApiRouter,
    /// Require a key, and return the same to every tenant.
    catalog: OpenApiRouter,
}

/// The routes with their state, by what they require.
struct Routers {
    invocations: OpenApiRouter,
    open: OpenApiRouter,
    keyed: OpenApiRouter,
    catalog: OpenApiRouter,
}

impl Routes {
    fn new() -> Self {
        Self {
            invocations: cloakroom_proxy::invocation_routes(),
            open: openapi::routes().merge(cloakroom_threeds::browser_routes()),
            open_webhooks: cloakroom_webhooks::open_routes(),
            elements: cloakroom_elements::routes(),
            open_pages: cloakroom_pages::browser_routes(),
            tokens: cloakroom_tokens::routes(),
            management: cloakroom_management::routes(),
            pages: cloakroom_pages::routes(),
            threeds: cloakroom_threeds::routes(),
            proxies: cloakroom_proxy::routes(),
            webhooks: cloakroom_webhooks::routes(),
            removed: removed_operations::routes(),
            catalog: formulas::routes(),
        }
    }

    fn with_state(self, node: &Node) -> Routers {
        let (vault, tokens, threeds): (&Vault, &TokenVault, &ThreedsServer) = (node, node, node);
        Routers {
            invocations: self.invocations.with_state(node.proxy.clone()),
            open: self
                .open
                .with_state(threeds.clone())
                .merge(self.open_webhooks.with_state(node.webhooks.clone()))
                .merge(self.elements.with_state(tokens.clone()))
                .merge(self.open_pages.with_state(tokens.clone())),
            keyed: self
                .tokens
                .with_state(tokens.clone())
                .merge(self.management.with_state(vault.clone()))
                .merge(self.pages.with_state(tokens.clone()))
                .merge(self.threeds.with_state(threeds.clone()))
                .merge(self.proxies.with_state(node.proxy.clone()))
                .merge(self.webhooks.with_state(node.webhooks.clone()))
                .merge(self.removed),
            catalog: self.catalog,
        }
    }

    fn document(self) -> OpenApi {
        let mut open = self.open.into_openapi();
        open.merge(self.open_webhooks.into_openapi());
        open.merge(self.elements.into_openapi());
        open.merge(self.open_pages.into_openapi());
        let mut keyed = self.tokens.into_openapi();
        keyed.merge(self.management.into_openapi());
        keyed.merge(self.pages.into_openapi());
        keyed.merge(self.threeds.into_openapi());
        keyed.merge(self.proxies.into_openapi());
        keyed.merge(self.webhooks.into_openapi());
        keyed.merge(self.removed.into_openapi());
        keyed.merge(self.catalog.into_openapi());
        keyed.merge(self.invocations.into_openapi());
        openapi::document(open, keyed)
    }
}

/// The OpenAPI document of all routes.
pub fn document() -> OpenApi {
    Routes::new().document()
}

/// The OpenAPI document as text, the same for every node.
pub fn document_text() -> DocumentText {
    static TEXT: LazyLock<DocumentText> = LazyLock::new(|| DocumentText::new(&document()));
    TEXT.clone()
}

/// The API, ready to be served.
#[expect(
    clippy::expect_used,
    reason = "two handlers for one path are a programming error, found by any test"
)]
pub fn api(node: Node) -> Api {
    let routers = Routes::new().with_state(&node);
    let (open, open_document) = routers.open.split_for_parts();
    let (keyed, keyed_document) = routers.keyed.split_for_parts();
    let (catalog, catalog_document) = routers.catalog.split_for_parts();
    let (invocations, invocations_document) = routers.invocations.split_for_parts();
    let table = RouteTable::new(
        node.config.http.prefix(),
        &[
            (Authentication::Open, open_document),
            (Authentication::Keyed(KeyLookup::Primary), keyed_document),
            (
                Authentication::Keyed(KeyLookup::PrimaryOrStandby),
                catalog_document,
            ),
            (Authentication::Proxy, invocations_document),
        ],
    );
    let handlers = open
        .layer(Extension(DocumentSource(document_text)))
        .merge(keyed)
        .merge(catalog)
        .merge(invocations);
    Api(Arc::new(Inner {
        route_table: table.expect("each path is in the route table once"),
        handlers,
        cors: cors(),
        recorder: telemetry::Recorder::default(),
        node,
    }))
}

/// Matches the route of a request, runs its middleware, and calls its handler.
///
/// All of this is one future rather than a tower layer per middleware: a layer costs every request
/// an allocation, a copy of everything inside of it, and a move of its whole future.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    node: Node,
    route_table: RouteTable,
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
        Box::pin(async move { Ok(api.respond(request.map(Body::new)).await) })
    }
}

impl Inner {
    async fn respond(&self, mut request: Request) -> Response {
        let is_head = request.method() == Method::HEAD;
        let route_match = self.route_table.find(&mut request);
        if let Some(route) = route_match.route() {
            request.extensions_mut().insert(route.clone());
        }
        let name = route_match.route().map(|route| Arc::clone(&route.0));
        let key = request.headers().get(authentication::API_KEY).cloned();
        let error_pages = route_match.route().and_then(|Route(route)| {
            ErrorPages::of_request(route, self.node.config.http.prefix(), request.headers())
        });
        let handle = async |request: Request| {
            let trace_id = request.extensions().get::<TraceId>().cloned();
            let response = self.add_cors_headers(route_match, request).await;
            let base_url = self.node.config.http.base_url.as_ref();
            let base_url = base_url.map_or("", BaseUrl::as_str);
            let mut response = complete_problem(response, base_url, trace_id.as_ref());
            if let Some(error_pages) = error_pages {
                response = error_pages.replace(response, trace_id.as_ref());
            }
            if telemetry::is_refusal(response.status())
                && let Some(prefix) = key.as_ref().and_then(authentication::request_key_prefix)
            {
                response.extensions_mut().insert(prefix);
            }
            response
        };
        let response = self.recorder.record(name, request, handle).await;
        match is_head {
            true => without_body(response),
            false => response,
        }
    }

    /// Adds CORS headers for browsers, which send `Origin`. Other clients do not need them.
    async fn add_cors_headers(&self, route_match: RouteMatch<'_>, request: Request) -> Response {
        if !request.headers().contains_key(header::ORIGIN) {
            return self.handle(route_match, request).await;
        }
        let inside =
            service_fn(|request| self.handle(route_match, request).map(Ok::<_, Infallible>));
        let Ok(response) = Box::pin(self.cors.layer(inside).oneshot(request)).await;
        response
    }

    /// The outermost middleware. A panic fails only its own request.
    async fn handle(&self, route_match: RouteMatch<'_>, request: Request) -> Response {
        let next = |request| self.run_middleware(route_match, request);
        let response = gates::rate_limits::limit_addresses(&self.node.rate_limits, request, next);
        let response = AssertUnwindSafe(response).catch_unwind().await;
        response.unwrap_or_else(|_| panic_response())
    }

    /// Middleware in front of the handler, from the outside in.
    async fn run_middleware(&self, route_match: RouteMatch<'_>, request: Request) -> Response {
        let node = &self.node;
        match route_match {
            RouteMatch::NotFound => unsupported::reject(request.uri().path()).into_response(),
            RouteMatch::MethodNotAllowed(_, allowed) => {
                let error = ApiError::method_not_allowed(allowed.to_str().unwrap_or_default());
                ([(header::ALLOW, allowed.clone())], error).into_response()
            }
            RouteMatch::Handler(_, Authentication::Open) => {
                let limits = BodyLimits::new(&node.config.http);
                let max_bytes = limits.max_bytes.min(OPEN_BODY_BYTES_MAX);
                let limits = BodyLimits {
                    max_bytes,
                    ..limits
                };
                self.run_common_middleware(limits, request).await
            }
            RouteMatch::Handler(_, Authentication::Proxy) => {
                Box::pin(self.run_proxy_middleware(request)).await
            }
            RouteMatch::Handler(_, Authentication::Keyed(lookup)) => {
                authentication::require_key(node, lookup, request, |request| {
                    gates::deprecations::add_headers_and_count(
                        node,
                        &node.deprecation_counts,
                        request,
                        |request| {
                            self.run_common_middleware(BodyLimits::new(&node.config.http), request)
                        },
                    )
                })
                .await
            }
        }
    }

    /// Middleware of proxied requests. The body is streamed, and the wait for the destination holds
    /// no permit; the handler acquires one for the work on this node.
    async fn run_proxy_middleware(&self, mut request: Request) -> Response {
        if !request.headers().contains_key(authentication::API_KEY)
            && let Some(path) = request.extensions().get::<InvocationPath>()
            && let Some(key) = invoke::open_proxy_key(request.headers(), path)
        {
            request.extensions_mut().insert(key);
        }
        let node = &self.node;
        let next = |request| {
            gates::deprecations::add_headers_and_count(
                node,
                &node.deprecation_counts,
                request,
                |request| {
                    gates::rate_limits::limit_rate(&node.rate_limits, request, |request| {
                        call(self.handlers.clone(), request)
                    })
                },
            )
        };
        authentication::accept_key(node, request, next, invoke::reject).await
    }

    /// Middleware after authentication, or without it on open routes.
    async fn run_common_middleware(&self, limits: BodyLimits, request: Request) -> Response {
        gates::rate_limits::limit_rate(&self.node.rate_limits, request, async |request| {
            let request = receive_body(limits, request).await;
            let (node, handlers) = (self.node.clone(), self.handlers.clone());
            gates::idempotency::run_to_completion(request, |request| run(node, handlers, request))
                .await
        })
        .await
    }
}

/// Middleware that acquires resources for a request. Without a caller it acquires none.
async fn run(node: Node, handlers: axum::Router, request: Request) -> Response {
    gates::rate_limits::limit_concurrency(&node.rate_limits, request, |request| {
        gates::idempotency::execute_once(&node, request, |request| call(handlers, request))
    })
    .await
}

async fn call(mut handlers: axum::Router, request: Request) -> Response {
    let Ok(response) = handlers.call(request).await;
    response
}

/// Keeps the content length for a HEAD request.
fn without_body(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        let length = HeaderValue::from(length);
        head.headers.entry(header::CONTENT_LENGTH).or_insert(length);
    }
    Response::from_parts(head, Body::empty())
}

/// The panic hook has logged the location; the client receives a generic error.
fn panic_response() -> Response {
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
        invoke::DESTINATION_STATUS,
    ];
    own.into_iter()
        .chain(rate_limits::HEADERS)
        .chain(gates::deprecations::HEADERS)
        .collect()
}
