//! Every route of the service, and the gates in front of them.

use std::panic::AssertUnwindSafe;

use axum::Extension;
use axum::extract::{FromRef as _, Request, State};
use axum::http::{HeaderName, Method, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tower::ServiceBuilder;
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use tower_http::normalize_path::NormalizePathLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

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

/// What every request passes first. A panic ends one request, and nothing else.
async fn enter(State(vault): State<Vault>, request: Request, next: Next) -> Response {
    let guard = rate_limits::gate::guard_addresses;
    let entered = guard(&vault, request, |request| next.run(request));
    let entered = AssertUnwindSafe(entered).catch_unwind().await;
    entered.unwrap_or_else(|_| panic_answer())
}

/// What a request with a key passes, from the outside in.
///
/// One function rather than a layer each: a layer costs every request an allocation, a copy of all that
/// lies inside of it, and a move of its whole future.
async fn pass_gates(
    State((vault, source)): State<(Vault, Source)>,
    request: Request,
    next: Next,
) -> Response {
    let vault = &vault;
    access::gate::require_key(vault, source, request, |request| {
        deprecations::gate::tell_and_count(vault, request, |request| {
            pass_open_gates(vault, request, next)
        })
    })
    .await
}

/// The same for a request that needs no key.
async fn pass_open(State(vault): State<Vault>, request: Request, next: Next) -> Response {
    pass_open_gates(&vault, request, next).await
}

async fn pass_open_gates(vault: &Vault, request: Request, next: Next) -> Response {
    rate_limits::gate::count(vault, request, async |request| {
        let request = receive_body(BodyLimits::from_ref(vault), request).await;
        let vault = vault.clone();
        idempotency::carry_through(request, |request| run(vault, request, next)).await
    })
    .await
}

/// What is taken for a request and given back. Without a caller there is nothing to take.
async fn run(vault: Vault, request: Request, next: Next) -> Response {
    rate_limits::gate::take_turns(&vault, request, |request| {
        idempotency::answer_once(&vault, request, next)
    })
    .await
}

/// The API, ready to be served.
pub fn api(vault: Vault) -> axum::Router {
    let gates = |source| from_fn_with_state((vault.clone(), source), pass_gates);
    let open_gates = from_fn_with_state(vault.clone(), pass_open);
    let enter = from_fn_with_state(vault.clone(), enter);
    let keyed = keyed_routes().route_layer(gates(Source::Primary));
    let catalog = catalog_routes().route_layer(gates(Source::AnyServer));
    let (routes, _) = open_routes()
        .route_layer(open_gates)
        .merge(keyed)
        .merge(catalog)
        .split_for_parts();
    let routes = routes
        .fallback(async || ApiError::not_found("There is no such path."))
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .layer(Extension(document_text()))
        .with_state(vault.clone());
    let prefixed = match vault.config.http.prefix() {
        "" => routes,
        prefix => axum::Router::new()
            .nest(prefix, routes)
            .fallback(async || ApiError::not_found("There is no such path.")),
    };
    // The first is the outermost.
    let around = ServiceBuilder::new()
        .layer(telemetry::Record::default())
        .layer(cors())
        .layer(enter);
    // Routing happens inside, after a trailing slash is gone: `/tokens/` is `/tokens`.
    let normalized = ServiceBuilder::new()
        .layer(NormalizePathLayer::trim_trailing_slash())
        .service::<axum::Router>(prefixed.layer(around));
    axum::Router::new().fallback_service(tower::service_fn(move |request: Request| {
        tower::ServiceExt::oneshot(normalized.clone(), request)
    }))
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
