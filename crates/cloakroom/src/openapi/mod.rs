//! The OpenAPI document, generated from the routes and served with them.

mod descriptions;
mod examples;
#[cfg(test)]
mod tests;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cloakroom_core::idempotency;
use cloakroom_platform::api::SharedBody;
use http::header::CONTENT_TYPE;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::ServerBuilder;
use utoipa::openapi::{
    Components, Content, Deprecated, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder,
    PathItem, Ref, RefOr, Required, ResponseBuilder, response,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::descriptions::Descriptions;
use self::examples::Examples;

const KEY_SCHEME: &str = "api_key";

const DESCRIPTION: &str = "A self-hosted token vault that implements the Basis Theory API.\n\n\
    Every error is a Problem. A path that is not listed here returns 404, or 501 if the hosted service \
    has it; a method that is not listed for its path returns 405.";

/// The document as it is committed and served: pretty-printed JSON with a final newline.
#[derive(Clone)]
pub struct DocumentText(Bytes);

impl DocumentText {
    pub(crate) fn new(document: &OpenApi) -> Self {
        let mut text = document.to_pretty_json().unwrap_or_default();
        text.push('\n');
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Returns the document. It is made when it is first requested: a node starts sooner without it.
#[derive(Clone, Copy)]
pub(crate) struct DocumentSource(pub(crate) fn() -> DocumentText);

/// Routes about the service itself. They require a [`DocumentSource`] extension.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(ping))
        .routes(routes!(describe))
}

/// Check that the service is running.
#[utoipa::path(
    get, path = "/ping", tag = "Service",
    responses((status = 200, description = "An empty body.")),
)]
async fn ping() {}

/// Return the OpenAPI document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "Service",
    responses((status = 200, description = "This document.", content_type = "application/json")),
)]
async fn describe(Extension(document): Extension<DocumentSource>) -> Response {
    let json = [(CONTENT_TYPE, "application/json; charset=utf-8")];
    // Without a copy: all responses share the same bytes.
    (json, Extension(SharedBody), document.0().0).into_response()
}

/// Merges the documents of the routes without a key and of those that require one, and adds what handlers do not
/// declare themselves.
pub(crate) fn document(mut open: OpenApi, mut keyed: OpenApi) -> OpenApi {
    for (path, item) in &mut keyed.paths.paths {
        let writes = [&mut item.put, &mut item.post, &mut item.patch];
        for operation in writes.into_iter().flatten() {
            if idempotency::applies_to_path(path) && can_succeed(operation) {
                add_idempotency(operation);
            }
        }
    }
    for operation in open.paths.paths.values_mut().flat_map(operations) {
        // An empty list: the operation requires no key. Without a list, it would be unknown.
        operation.security = Some(Vec::new());
    }
    for operation in keyed.paths.paths.values_mut().flat_map(operations) {
        add_keyed_parts(operation);
    }
    let license = LicenseBuilder::new()
        .name("Apache-2.0")
        .identifier(Some("Apache-2.0"))
        .build();
    let info = InfoBuilder::new()
        .title("Cloakroom")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(license))
        .build();
    let server = ServerBuilder::new()
        .url("/")
        .description(Some("The vault that serves this document."))
        .build();
    let mut document = OpenApiBuilder::new()
        .info(info)
        .servers(Some([server]))
        .build();
    document.merge(open);
    document.merge(keyed);
    let mut examples = Examples::read();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        add_common_parts(operation);
        examples.add_to(operation);
    }
    let components = document.components.get_or_insert_default();
    add_components(components);
    examples.add_problems(components);
    Descriptions::read().add_to(components);
    document
}

/// Whether an operation has a response of success. Removed operations have none; they change nothing, so idempotency
/// keys do not apply to them.
fn can_succeed(operation: &Operation) -> bool {
    let mut statuses = operation.responses.responses.keys();
    statuses.any(|status| status.starts_with('2'))
}

/// Adds the parameter and responses of idempotency keys.
fn add_idempotency(operation: &mut Operation) {
    let key = RefOr::Ref(Ref::new("#/components/parameters/IdempotencyKey"));
    operation.parameters.get_or_insert_default().push(key);
    let responses = &mut operation.responses.responses;
    let still_running = "The first request with this idempotency key is still being processed.";
    match responses.get_mut("409") {
        Some(RefOr::T(conflict)) => {
            conflict.description = format!("{} Or: {still_running}", conflict.description)
        }
        _ => {
            responses.insert("409".to_owned(), problem(still_running));
        }
    }
    responses
        .entry("400".to_owned())
        .or_insert_with(|| problem("The idempotency key is invalid."));
    let other_body =
        "With `idempotency.refuse_other_bodies`: the key was used with a different body.";
    responses
        .entry("422".to_owned())
        .or_insert_with(|| problem(other_body));
}

/// Adds the API key, the deprecation and the responses that are common to all operations that require a key.
fn add_keyed_parts(operation: &mut Operation) {
    let requirement = SecurityRequirement::new(KEY_SCHEME, Vec::<String>::new());
    operation.security.get_or_insert_default().push(requirement);
    let tags = operation.tags.as_deref().unwrap_or_default();
    if tags.iter().any(|tag| tag == "Deprecated") {
        operation.deprecated = Some(Deprecated::True);
    }
    let responses = &mut operation.responses.responses;
    let internal = problem("Internal server error.");
    responses.insert("500".to_owned(), internal);
    let busy = problem("The node is processing too many requests of this tenant (`busy`).");
    responses.entry("503".to_owned()).or_insert(busy);
}

/// Adds the parameters, headers and responses that are common to all operations.
fn add_common_parts(operation: &mut Operation) {
    let trace = RefOr::Ref(Ref::new("#/components/parameters/TraceId"));
    operation.parameters.get_or_insert_default().push(trace);
    // utoipa's attribute cannot mark a body as optional, so its description does.
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && let Some(description) = &body.description
        && description.starts_with("Optional")
    {
        body.required = Some(Required::False);
    }
    let too_many = problem("A rate limit was exceeded (`rate_limited`).");
    let responses = &mut operation.responses.responses;
    responses.insert("429".to_owned(), too_many);
    for (status, response) in responses {
        let RefOr::T(response) = response else {
            continue;
        };
        if status.as_str() >= "400" {
            use_problem_media_type(response);
        }
        for header in response.headers.values_mut() {
            if let RefOr::T(header) = header {
                mark_required(header);
            }
        }
        let trace = RefOr::Ref(Ref::new("#/components/headers/TraceId"));
        response.headers.insert("BT-TRACE-ID".to_owned(), trace);
        if status == "429" || status == "503" {
            let retry_after = RefOr::Ref(Ref::new("#/components/headers/RetryAfter"));
            response
                .headers
                .insert("Retry-After".to_owned(), retry_after);
        }
    }
}

/// Adds the security scheme, the parameters and the headers that operations refer to.
fn add_components(components: &mut Components) {
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("BT-API-KEY")));
    components.add_security_scheme(KEY_SCHEME, scheme);
    let trace = ParameterBuilder::new()
        .name("BT-TRACE-ID")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "Returned in the response and written to the log. A value that is longer than 200 \
             characters, or not printable ASCII, is replaced.",
        ))
        .schema(Some(Object::with_type(Type::String)))
        .build();
    let trace = RefOr::T(trace);
    components.parameters.insert("TraceId".to_owned(), trace);
    let idempotency_key = ParameterBuilder::new()
        .name("BT-IDEMPOTENCY-KEY")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "A request with this header is executed once: a retry within 24 hours changes nothing and \
             returns the same response. An error leaves the key unused. 1 to 255 printable ASCII characters.",
        ))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .max_length(Some(255))
                .pattern(Some("^[ -~]*$")),
        ))
        .build();
    let idempotency_key = RefOr::T(idempotency_key);
    components
        .parameters
        .insert("IdempotencyKey".to_owned(), idempotency_key);
    let trace = header(Type::String, "The trace id of the request, or a new one.");
    components.headers.insert("TraceId".to_owned(), trace);
    let retry_after = header(Type::Integer, "Seconds to wait before retrying.");
    components
        .headers
        .insert("RetryAfter".to_owned(), retry_after);
}

/// Changes the media type of an error to that of RFC 9457: from the schema `Problem`, utoipa infers
/// `application/json`.
fn use_problem_media_type(response: &mut response::Response) {
    let is_proxy_error = |content: &RefOr<Content>| match content {
        RefOr::T(content) => content.schema.as_ref() == Some(&proxy_error()),
        RefOr::Ref(_) => false,
    };
    if response
        .content
        .get("application/json")
        .is_some_and(is_proxy_error)
    {
        return;
    }
    if let Some(content) = response.content.shift_remove("application/json") {
        let media_type = "application/problem+json".to_owned();
        response.content.insert(media_type, content);
    }
}

/// The schema of an error of the proxy, which has a problem as a member.
fn proxy_error() -> RefOr<Schema> {
    Ref::from_schema_name("ProxyErrorBody").into()
}

/// An error response with the schema `Problem`.
fn problem(description: &str) -> RefOr<response::Response> {
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    let response = ResponseBuilder::new()
        .description(description)
        .content("application/json", problem)
        .build();
    RefOr::T(response)
}

fn header(kind: Type, description: &str) -> RefOr<Header> {
    let mut header = HeaderBuilder::new()
        .schema(Some(Object::with_type(kind)))
        .description(Some(description))
        .build();
    mark_required(&mut header);
    RefOr::T(header)
}

/// Marks a header as required: every documented header is always sent. utoipa's type has no such field, but
/// serializes its extensions.
fn mark_required(header: &mut Header) {
    header.extensions = Some(Extensions::from_iter([("required", true)]));
}

/// All operations of a path.
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
