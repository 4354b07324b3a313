//! The description of the API, made from the routes themselves, and served beside them.

use std::sync::Arc;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Deprecated, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::vault::Vault;

const KEY_SCHEME: &str = "api_key";

/// The description as it is committed and served: pretty JSON with a final newline.
#[derive(Clone)]
pub struct DocumentText(Arc<str>);

impl DocumentText {
    pub(crate) fn new(document: &OpenApi) -> Self {
        let mut text = document.to_pretty_json().unwrap_or_default();
        text.push('\n');
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Routes about the service itself. They find the description in an extension.
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
async fn describe(Extension(text): Extension<DocumentText>) -> Response {
    let json = [(CONTENT_TYPE, "application/json; charset=utf-8")];
    (json, text.as_str().to_owned()).into_response()
}

/// Joins what the routes say of themselves. Only keyed routes require a key.
pub(crate) fn document(open: OpenApi, mut keyed: OpenApi) -> OpenApi {
    for operation in keyed.paths.paths.values_mut().flat_map(operations) {
        let requirement = SecurityRequirement::new(KEY_SCHEME, Vec::<String>::new());
        operation.security.get_or_insert_default().push(requirement);
        let tags = operation.tags.as_deref().unwrap_or_default();
        if tags.iter().any(|tag| tag == "Deprecated") {
            operation.deprecated = Some(Deprecated::True);
        }
    }
    let info = InfoBuilder::new()
        .title("Cloakroom")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A token vault that you run yourself."))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").build()))
        .build();
    let mut document = OpenApiBuilder::new().info(info).build();
    document.merge(open);
    document.merge(keyed);
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("BT-API-KEY")));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(KEY_SCHEME, scheme);
    document
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [
        &mut path.get,
        &mut path.put,
        &mut path.post,
        &mut path.delete,
        &mut path.patch,
    ];
    methods.into_iter().flatten()
}
