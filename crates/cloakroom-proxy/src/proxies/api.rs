//! HTTP routes for proxies.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, FieldError, JsonBody, MergePatchBody, NumberedPageBody,
    PathId, Problem, QueryErrors, ReadErrors, WriteErrors,
};
use cloakroom_platform::telemetry::catalog;
use http::HeaderMap;
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::ProxyBody;
use super::{Error, NewProxy, Proxy, parameters};
use crate::proxies;
use crate::server::ProxyServer;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<ProxyServer> {
    OpenApiRouter::new()
        .routes(routes!(create_proxy, list_proxies))
        .routes(routes!(
            find_proxy,
            replace_proxy,
            patch_proxy,
            delete_proxy
        ))
        .routes(routes!(rotate_proxy_key))
}

/// Create a proxy.
///
/// Requires `proxy:create`, and `application:grant` for an application that holds more than the key's own one. Its key
/// selects it, in the header `BT-PROXY-KEY` of `/proxy`.
#[utoipa::path(
    post, path = "/proxies", tag = "Proxies",
    request_body = NewProxy,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The proxy exists and its key works.", body = ProxyBody<'_>,
         headers(("Location" = String, description = "URL of the proxy."))),
        (status = 422, description = "The tenant already has 1000 proxies.", body = Problem),
        (status = 501, description = "Transforms with code are not built.", body = Problem),
    ),
)]
async fn create_proxy(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    headers: HeaderMap,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Checked before the body is parsed: a key without the permission learns nothing from errors.
    caller.require_plain(Permission::ProxyCreate)?;
    let new = read(&caller, &headers, &body?)?;
    let template = caller.response_template(|proxy: &Proxy| {
        let location = format!("{base_url}/proxies/{}", proxy.id);
        Answer::created(location, &shown(&caller, proxy))
    });
    let template = template.without_secrets(&SECRETS);
    let created = proxies::create(&server, &caller, new, &template).await?;
    template.render(&created)
}

/// List proxies.
///
/// Requires `proxy:read`. Newest first, with their keys and configuration values; each read is in the audit log. Pages
/// after the last one are empty.
#[utoipa::path(
    get, path = "/proxies", tag = "Proxies",
    params(
        ("id" = Option<Vec<Uuid>>, Query, description = "Proxies with one of these ids.", max_items = 100),
        ("name" = Option<String>, Query, description = "Proxies whose name contains this text; `*` stands for any text.", max_length = 200),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Proxies per page; 20 by default.", minimum = 0, maximum = 100),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "A page of proxies.", body = NumberedPageBody<ProxyBody<'_>>),
    ),
)]
async fn list_proxies(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ProxyRead)?;
    let (filter, page) = parameters::read(query.as_deref()).map_err(ApiError::all_invalid)?;
    let listed = proxies::list(&server, &caller, &filter, page).await?;
    let bodies = listed.proxies.iter().map(|proxy| shown(&caller, proxy));
    Answer::ok(&NumberedPageBody::new(page, listed.total, bodies.collect()))
}

/// Read a proxy.
///
/// Requires `proxy:read`. The response contains the key and the configuration values; the read is in the audit log.
#[utoipa::path(
    get, path = "/proxies/{id}", tag = "Proxies",
    params(("id" = Uuid, Path, description = "The proxy's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The proxy.", body = ProxyBody<'_>),
        (status = 404, description = "No such proxy.", body = Problem),
    ),
)]
async fn find_proxy(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let proxy = proxies::find(&server, &caller, &id).await?;
    Answer::ok(&shown(&caller, &proxy))
}

/// Replace a proxy.
///
/// Requires `proxy:update`, and `application:grant` if the old or the new application holds more than the key's own one.
/// Absent attributes are cleared; the key does not change. Takes effect on every node within five seconds.
#[utoipa::path(
    put, path = "/proxies/{id}", tag = "Proxies",
    params(("id" = Uuid, Path, description = "The proxy's id.")),
    request_body = NewProxy,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The change is committed.", body = ProxyBody<'_>),
        (status = 404, description = "No such proxy.", body = Problem),
        (status = 409, description = "The proxy was modified concurrently; retry the request.", body = Problem),
        (status = 501, description = "Transforms with code are not built.", body = Problem),
    ),
)]
async fn replace_proxy(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ProxyUpdate)?;
    let new = read(&caller, &headers, &body?)?;
    let template = caller.response_template(|proxy: &Proxy| Answer::ok(&shown(&caller, proxy)));
    let template = template.without_secrets(&SECRETS);
    let changed = proxies::replace(&server, &caller, &id, new, &template).await?;
    template.render(&changed)
}

/// Update a proxy.
///
/// Requires `proxy:update`, and `application:grant` as a replacement does. The body is a JSON merge patch (RFC 7386).
#[utoipa::path(
    patch, path = "/proxies/{id}", tag = "Proxies",
    params(("id" = Uuid, Path, description = "The proxy's id.")),
    request_body(content = NewProxy, content_type = "application/merge-patch+json"),
    responses(
        WriteErrors, BodyErrors,
        (status = 204, description = "The change is committed."),
        (status = 404, description = "No such proxy.", body = Problem),
        (status = 409, description = "The proxy was modified concurrently; retry the request.", body = Problem),
        (status = 415, description = "The body is not a JSON merge patch.", body = Problem),
        (status = 501, description = "Transforms with code are not built.", body = Problem),
    ),
)]
async fn patch_proxy(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Result<MergePatchBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::ProxyUpdate)?;
    let MergePatchBody(body) = body?;
    let new: NewProxy = body.read()?;
    reject_unsupported(&caller, &headers, &new)?;
    let patch: Map<String, Value> = body.read()?;
    let template = caller.response_template(|_: &Proxy| Ok(Answer::no_content()));
    let changed = proxies::patch(&server, &caller, &id, patch, &template).await?;
    template.render(&changed)
}

/// Delete a proxy.
///
/// Requires `proxy:delete`. Its key is rejected by this node at once, and by every node within five seconds.
#[utoipa::path(
    delete, path = "/proxies/{id}", tag = "Proxies",
    params(("id" = Uuid, Path, description = "The proxy's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The proxy is deleted."),
        (status = 404, description = "No such proxy.", body = Problem),
    ),
)]
async fn delete_proxy(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    proxies::delete(&server, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// Replace the key of a proxy.
///
/// Requires `proxy:update`. The response contains the new key. The old key is rejected by this node at once, and by every
/// node within five seconds.
#[utoipa::path(
    post, path = "/proxies/{id}/rotate-key", tag = "Proxies",
    params(("id" = Uuid, Path, description = "The proxy's id.")),
    responses(
        WriteErrors,
        (status = 200, description = "The new key works.", body = ProxyBody<'_>),
        (status = 404, description = "No such proxy.", body = Problem),
        (status = 409, description = "The proxy was modified concurrently; retry the request.", body = Problem),
    ),
)]
async fn rotate_proxy_key(
    State(server): State<ProxyServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let template = caller.response_template(|proxy: &Proxy| Answer::ok(&shown(&caller, proxy)));
    let template = template.without_secrets(&SECRETS);
    let rotated = proxies::rotate_key(&server, &caller, &id, &template).await?;
    template.render(&rotated)
}

/// Members of a proxy that are not stored for an idempotency key. `GET /proxies/{id}` returns them.
const SECRETS: [&str; 2] = ["key", "configuration"];

fn shown<'a>(caller: &Caller, proxy: &'a Proxy) -> ProxyBody<'a> {
    let is_masked = caller.settings.mask_proxy_configuration;
    ProxyBody::new(caller.tenant, proxy, is_masked)
}

fn read(caller: &Caller, headers: &HeaderMap, body: &JsonBody) -> Result<NewProxy, ApiError> {
    let new: NewProxy = body.read()?;
    reject_unsupported(caller, headers, &new)?;
    Ok(new)
}

/// Rejects features that would otherwise be ignored silently: removed attributes, and encrypted configuration values.
fn reject_unsupported(
    caller: &Caller,
    headers: &HeaderMap,
    new: &NewProxy,
) -> Result<(), ApiError> {
    if new.proxy_host.is_some() {
        return Err(ApiError::not_built(
            "Proxies have no host names of their own. Leave out `proxy_host`, and send requests to `/proxy` with the key of the \
             proxy in BT-PROXY-KEY.",
        ));
    }
    if new.client_certificate.is_some() {
        return Err(ApiError::not_built(
            "Proxies have no client certificates of their own. Leave out `client_certificate`; the operator configures a \
             certificate for the host and the tenant in `egress.destinations_file`.",
        ));
    }
    let mut broken = Vec::new();
    let removed = [
        ("request_reactor_id", &new.request_reactor_id),
        ("response_reactor_id", &new.response_reactor_id),
    ];
    for (attribute, _) in removed.iter().filter(|(_, value)| value.is_some()) {
        caller
            .deprecated_features
            .mark(DeprecatedFeature::ProxyReactors);
        let rule = DeprecatedFeature::ProxyReactors.row().rule();
        broken.push(FieldError::new(*attribute, rule));
    }
    if headers.contains_key("bt-encrypted") {
        let rule = "must not be sent to /proxies: send configuration values in the body; they are stored encrypted";
        broken.push(FieldError::new("BT-ENCRYPTED", rule));
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(ApiError::all_invalid(broken)),
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::GrantExceeded(exceeded) => Self::forbidden(format!("{exceeded}.")),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotBuilt => Self::not_built(
                "Transforms with code are not built. Use mask, tokenize, append_json, append_text or append_header, or \
                 transform in your own service in front of the proxy.",
            ),
            Error::NotFound => Self::not_found("There is no such proxy."),
            Error::TooMany(most) => Self::unprocessable(format!(
                "A tenant can have at most {most} proxies. Delete one first."
            )),
            Error::Contended => {
                Self::conflict("The proxy was modified concurrently; retry the request.")
            }
            Error::Altered(_) => {
                catalog::ACCESS_ALTERED_ROWS.increment(1);
                tracing::error!(
                    error.kind = "altered_row",
                    "a proxy or its application was changed outside the vault"
                );
                Self::internal("altered_row")
            }
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
