//! Routes of web elements. Browsers load them without a key, or with a public key in the URL.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use cloakroom_core::access::{ApplicationKind, Principal};
use cloakroom_core::authentication;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{Answer, ApiError, Problem, ReadErrors};
use cloakroom_tokens::{TokenVault, client_encryption};
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::asset::{self, HASHES};
use crate::page::Page;

/// The version in the path is that of the client package; all have the same content.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(client_script))
        .routes(routes!(coordinator_script))
        .routes(routes!(field_script))
        .routes(routes!(show_coordinator))
        .routes(routes!(show_field))
        .routes(routes!(find_public_key))
        .routes(routes!(hashes))
}

/// Return the client script of web elements.
#[utoipa::path(
    get, path = "/web-elements/{version}/client/index.js", tag = "Web elements",
    params(("version" = String, Path, description = "The version of the browser package.")),
    responses((status = 200, description = "A script for a merchant's page.", content_type = "text/javascript")),
)]
async fn client_script(headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    asset::CLIENT.respond(&headers, query.as_deref())
}

/// Return the script of the coordinator frame.
#[utoipa::path(
    get, path = "/web-elements/{version}/hosted-elements/coordinator.js", tag = "Web elements",
    params(("version" = String, Path, description = "The version of the browser package.")),
    responses((status = 200, description = "A script for the frame.", content_type = "text/javascript")),
)]
async fn coordinator_script(headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    asset::COORDINATOR.respond(&headers, query.as_deref())
}

/// Return the script of a field frame.
#[utoipa::path(
    get, path = "/web-elements/{version}/hosted-elements/field.js", tag = "Web elements",
    params(("version" = String, Path, description = "The version of the browser package.")),
    responses((status = 200, description = "A script for the frame.", content_type = "text/javascript")),
)]
async fn field_script(headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    asset::FIELD.respond(&headers, query.as_deref())
}

/// Return the integrity values of the scripts.
///
/// For the script inventory of a payment page (PCI DSS 6.4.3) and the `integrity` attribute of script tags.
#[utoipa::path(
    get, path = "/web-elements/{version}/assets.json", tag = "Web elements",
    params(("version" = String, Path, description = "The version of the browser package.")),
    responses((status = 200, description = "The SHA-384 digest of each script.", content_type = "application/json")),
)]
async fn hashes() -> ([(http::HeaderName, &'static str); 1], &'static str) {
    let json = "application/json; charset=utf-8";
    ([(http::header::CONTENT_TYPE, json)], HASHES)
}

/// Show the coordinator frame of web elements.
///
/// It can be embedded by the sites in the tenant setting `elements_sites`.
#[utoipa::path(
    get, path = "/web-elements/{version}/hosted-elements/coordinator.html", tag = "Web elements",
    params(
        ("version" = String, Path, description = "The version of the browser package."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "A page for a hidden frame.", content_type = "text/html"),
        (status = 403, description = "The key is not a public one.", body = Problem),
    ),
)]
async fn show_coordinator(
    State(vault): State<TokenVault>,
    query: RawQuery,
) -> Result<Response, ApiError> {
    let principal = authenticate(&vault, &query).await?;
    Ok(Page::Coordinator.respond(&principal))
}

/// Show a field frame of web elements.
///
/// It can be embedded by the sites in the tenant setting `elements_sites`.
#[utoipa::path(
    get, path = "/web-elements/{version}/hosted-elements/field.html", tag = "Web elements",
    params(
        ("version" = String, Path, description = "The version of the browser package."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "A page for a frame.", content_type = "text/html"),
        (status = 403, description = "The key is not a public one.", body = Problem),
    ),
)]
async fn show_field(
    State(vault): State<TokenVault>,
    query: RawQuery,
) -> Result<Response, ApiError> {
    let principal = authenticate(&vault, &query).await?;
    Ok(Page::Field.respond(&principal))
}

/// The public key that the coordinator encrypts to.
#[derive(Serialize, ToSchema)]
struct PublicKeyBody {
    /// The raw 32 bytes in Base64, between PEM boundaries.
    public_key_pem: String,
}

/// Read the public key of a client encryption key.
///
/// The coordinator encrypts to keys of the tenant only. It reads them here instead of taking one from the page, which
/// could pass a key of its own and decrypt the result.
#[utoipa::path(
    get, path = "/web-elements/{version}/hosted-elements/keys/{id}", tag = "Web elements",
    params(
        ("version" = String, Path, description = "The version of the browser package."),
        ("id" = String, Path, description = "The id of the key."),
        ("apiKey" = String, Query, description = "A public API key of the tenant."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The public key.", body = PublicKeyBody),
        (status = 403, description = "The key is not a public one.", body = Problem),
        (status = 404, description = "The tenant has no such key.", body = Problem),
    ),
)]
async fn find_public_key(
    State(vault): State<TokenVault>,
    Path((_, id)): Path<(String, String)>,
    query: RawQuery,
) -> Result<Answer, ApiError> {
    let principal = authenticate(&vault, &query).await?;
    let public_key_pem = client_encryption::find_public_key(&vault, principal.tenant, &id).await?;
    Answer::ok(&PublicKeyBody { public_key_pem })
}

/// Authenticates the public key in the URL, which identifies the tenant. Keys of servers do not belong in a URL.
async fn authenticate(
    vault: &Vault,
    RawQuery(query): &RawQuery,
) -> Result<Arc<Principal>, ApiError> {
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(query.as_deref().unwrap_or_default()).unwrap_or_default();
    let key = pairs.into_iter().find(|(name, _)| name == "apiKey");
    let (_, key) = key.unwrap_or_default();
    let principal = authentication::authenticate(vault, &key).await?;
    match principal.application_kind {
        ApplicationKind::Public => Ok(principal),
        _ => Err(ApiError::forbidden(
            "Only a public API key may be used in a URL.",
        )),
    }
}
