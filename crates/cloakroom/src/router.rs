//! Every route of the service, and the gates in front of them.

use axum::Extension;
use axum::extract::Request;
use axum::http::{HeaderName, Method, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use tower_http::normalize_path::NormalizePathLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::access::gate;
use crate::api::{ApiError, receive_body};
use crate::openapi::DocumentText;
use crate::vault::Vault;
use crate::{
    applications, audit, client_encryption, deprecations, enrichments, formulas, idempotency,
    members, openapi, rate_limits, reports, sessions, telemetry, tenants, threeds, threeds_browser,
    token_documents, token_intents, token_queries, tokens,
};

/// Routes that anyone may ask.
fn open_routes() -> OpenApiRouter<Vault> {
    openapi::routes().merge(threeds_browser::routes())
}

/// Routes that need a key.
fn keyed_routes() -> OpenApiRouter<Vault> {
    tokens::routes()
        .merge(token_queries::routes())
        .merge(token_documents::routes())
        .merge(token_intents::routes())
        .merge(applications::routes())
        .merge(enrichments::routes())
        .merge(formulas::routes())
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
    openapi::document(open_routes().into_openapi(), keyed_routes().into_openapi())
}

/// The description as text.
pub fn document_text() -> DocumentText {
    DocumentText::new(&document())
}

/// The API, ready to be served.
pub fn api(vault: Vault) -> axum::Router {
    let once = from_fn_with_state(vault.clone(), idempotency::answer_once);
    let turnstile = from_fn_with_state(vault.clone(), rate_limits::gate::take_turns);
    let carry = from_fn(idempotency::carry_through);
    let receive = from_fn_with_state(vault.clone(), receive_body);
    let count = from_fn_with_state(vault.clone(), rate_limits::gate::count);
    let tell = from_fn_with_state(vault.clone(), deprecations::gate::tell_and_count);
    let gate = from_fn_with_state(vault.clone(), gate::require_key);
    let guard = from_fn_with_state(vault.clone(), rate_limits::gate::guard_addresses);
    // The last layer is the first that a request meets.
    let keyed = keyed_routes()
        .route_layer(once)
        .route_layer(turnstile)
        .route_layer(carry.clone())
        .route_layer(receive.clone())
        .route_layer(count.clone())
        .route_layer(tell)
        .route_layer(gate);
    let (routes, _) = open_routes()
        .route_layer(carry)
        .route_layer(receive)
        .route_layer(count)
        .merge(keyed)
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
    let recorded = prefixed
        .layer(guard)
        .layer(CatchPanicLayer::custom(|_| panic_answer()))
        .layer(cors())
        .layer(telemetry::Record);
    // Routing happens inside, after a trailing slash is gone: `/tokens/` is `/tokens`.
    let normalized = ServiceBuilder::new()
        .layer(NormalizePathLayer::trim_trailing_slash())
        .service::<axum::Router>(recorded);
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
