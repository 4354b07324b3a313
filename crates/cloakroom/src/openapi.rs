//! The description of the API, made from the routes themselves, and served beside them.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::router;
use crate::vault::Vault;

const KEY_SCHEME: &str = "api_key";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let mut text = document().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
});

/// Routes about the service itself.
pub(crate) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(ping))
        .routes(routes!(describe))
}

/// Tell that the service answers.
#[utoipa::path(
    get,
    path = "/ping",
    tag = "Service",
    responses((status = 200, description = "An empty body.")),
)]
async fn ping() {}

/// Describe this API.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "Service",
    responses((status = 200, description = "This document.", content_type = "application/json")),
)]
async fn describe() -> Response {
    (
        [(CONTENT_TYPE, "application/json; charset=utf-8")],
        DOCUMENT.as_str(),
    )
        .into_response()
}

/// The document as committed, served and compared: pretty JSON with a final newline.
pub fn document_text() -> &'static str {
    &DOCUMENT
}

/// Describes every route. Only keyed routes carry the security requirement.
pub fn document() -> OpenApi {
    let mut keyed = router::keyed_routes().into_openapi();
    for path in keyed.paths.paths.values_mut() {
        let operations = [
            &mut path.get,
            &mut path.put,
            &mut path.post,
            &mut path.delete,
            &mut path.patch,
        ];
        for operation in operations.into_iter().flatten() {
            let requirement = SecurityRequirement::new(KEY_SCHEME, Vec::<String>::new());
            operation.security.get_or_insert_default().push(requirement);
        }
    }
    let info = InfoBuilder::new()
        .title("Cloakroom")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A token vault that you run yourself."))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").build()))
        .build();
    let mut document = OpenApiBuilder::new().info(info).build();
    document.merge(router::open_routes().into_openapi());
    document.merge(keyed);
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("BT-API-KEY")));
    document
        .components
        .get_or_insert_default()
        .add_security_scheme(KEY_SCHEME, scheme);
    document
}
