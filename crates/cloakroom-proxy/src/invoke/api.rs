//! HTTP interface of the proxy.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use cloakroom_core::rate_limits::OpenProxyKey;
use cloakroom_platform::api::{ApiError, Problem};
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::call::{InvocationPath, Selector};
use super::{error, pipeline};
use crate::proxies;
use crate::server::ProxyServer;

/// The routes of this module. A request to any path below `/proxy` is routed to the second.
pub fn routes() -> OpenApiRouter<ProxyServer> {
    let mut routes = OpenApiRouter::new()
        .routes(routes!(invoke_proxy))
        .routes(routes!(invoke_proxy_path));
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        name_operation(&mut item.get, "get");
        name_operation(&mut item.post, "post");
        name_operation(&mut item.put, "put");
        name_operation(&mut item.patch, "patch");
        name_operation(&mut item.delete, "delete");
    }
    routes
}

/// Operation ids are unique, but one handler serves all methods.
fn name_operation(operation: &mut Option<Operation>, method: &str) {
    if let Some(operation) = operation {
        let id = operation.operation_id.take().unwrap_or_default();
        operation.operation_id = Some(format!("{id}_{method}"));
    }
}

/// The body of an error of the proxy. Responses of the destination are returned as they are.
#[derive(Serialize, ToSchema)]
pub(super) struct ProxyErrorBody {
    proxy_error: Problem,
}

/// Send a request through a proxy.
///
/// Requires `proxy:invoke` or `token:use`, on every token that the request refers to. `BT-PROXY-URL` has the destination,
/// or `BT-PROXY-KEY` the key of a pre-configured proxy. Expressions in body, headers and query are replaced by values.
/// The response is the response of the destination; `BT-PROXY-DESTINATION-STATUS` is absent if the error is ours.
#[utoipa::path(
    method(get, post, put, patch, delete), path = "/proxy", tag = "Proxy",
    params(
        ("BT-PROXY-URL" = Option<String>, Header, description = "An https URL: the destination."),
        ("BT-PROXY-KEY" = Option<String>, Header, description = "The key of a pre-configured proxy."),
        ("BT-ENCRYPTED" = Option<String>, Header, description = "Base64 of values that the client encrypted."),
    ),
    responses(
        (status = 200, description = "The response of the destination, with any status."),
        (status = 400, description = "The request is invalid, or refers to unknown tokens.", body = ProxyErrorBody),
        (status = 401, description = "The API key is missing or invalid.", body = ProxyErrorBody),
        (status = 403, description = "The API key lacks the permission, or the destination is not allowed.",
         body = ProxyErrorBody),
        (status = 404, description = "No proxy has this key.", body = ProxyErrorBody),
        (status = 408, description = "The destination did not respond in time.", body = ProxyErrorBody),
        (status = 413, description = "The body is too large.", body = ProxyErrorBody),
        (status = 502, description = "The destination is unreachable, or its response is invalid.",
         body = ProxyErrorBody),
        (status = 503, description = "Too many requests to the destination, or it failed repeatedly.",
         body = ProxyErrorBody),
    ),
)]
async fn invoke_proxy(State(server): State<ProxyServer>, request: Request) -> Response {
    respond(&server, request).await
}

/// Send a request to a path of the destination through a proxy.
///
/// Requires `proxy:invoke` or `token:use`, on every token that the request refers to. As `/proxy`; the path after it is
/// appended to the URL of the destination, verbatim.
#[utoipa::path(
    method(get, post, put, patch, delete), path = "/proxy/{suffix}", tag = "Proxy",
    params(
        ("suffix" = String, Path, description = "Any path, which may contain slashes."),
        ("BT-PROXY-URL" = Option<String>, Header, description = "An https URL: the destination."),
        ("BT-PROXY-KEY" = Option<String>, Header, description = "The key of a pre-configured proxy."),
        ("BT-ENCRYPTED" = Option<String>, Header, description = "Base64 of values that the client encrypted."),
    ),
    responses(
        (status = 200, description = "The response of the destination, with any status."),
        (status = 400, description = "The request is invalid, or refers to unknown tokens.", body = ProxyErrorBody),
        (status = 401, description = "The API key is missing or invalid.", body = ProxyErrorBody),
        (status = 403, description = "The API key lacks the permission, or the destination is not allowed.",
         body = ProxyErrorBody),
        (status = 404, description = "No proxy has this key.", body = ProxyErrorBody),
        (status = 408, description = "The destination did not respond in time.", body = ProxyErrorBody),
        (status = 413, description = "The body is too large.", body = ProxyErrorBody),
        (status = 502, description = "The destination is unreachable, or its response is invalid.",
         body = ProxyErrorBody),
        (status = 503, description = "Too many requests to the destination, or it failed repeatedly.",
         body = ProxyErrorBody),
    ),
)]
async fn invoke_proxy_path(State(server): State<ProxyServer>, request: Request) -> Response {
    respond(&server, request).await
}

async fn respond(server: &ProxyServer, request: Request) -> Response {
    let response = pipeline::invoke(server, request).await;
    response.unwrap_or_else(IntoResponse::into_response)
}

/// The response to a request that is rejected before it reaches a handler.
pub fn reject(error: ApiError) -> Response {
    error::reject(error)
}

/// The proxy that a request without an API key invokes, which its rate limit counts: by the digest of its key, because
/// counters are stored in Redis.
pub fn open_proxy_key(headers: &HeaderMap, path: &InvocationPath) -> Option<OpenProxyKey> {
    let selector = Selector::of(headers, path.query.as_deref());
    let key = selector.key().ok()??;
    Some(OpenProxyKey(Arc::from(proxies::key_name(key))))
}
