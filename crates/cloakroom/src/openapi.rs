//! The description of the API, made from the routes themselves, and served beside them.

use std::sync::Arc;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Content, Deprecated, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, Ref,
    RefOr, Required, ResponseBuilder, response,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::idempotency;
use crate::vault::Vault;

const KEY_SCHEME: &str = "api_key";

const ABOUT: &str = "A token vault that you run yourself.\n\nEvery failure is a Problem. A path that \
    is not listed here answers 404, a method that is not listed for its path 405.";

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

/// Joins what the routes say of themselves, and adds what holds for all of them. Only keyed routes
/// require a key.
pub(crate) fn document(open: OpenApi, mut keyed: OpenApi) -> OpenApi {
    for (path, item) in &mut keyed.paths.paths {
        let writes = [&mut item.put, &mut item.post, &mut item.patch];
        for operation in writes.into_iter().flatten() {
            if idempotency::counts_at(path) && succeeds(operation) {
                answer_once(operation);
            }
        }
    }
    for operation in keyed.paths.paths.values_mut().flat_map(operations) {
        let requirement = SecurityRequirement::new(KEY_SCHEME, Vec::<String>::new());
        operation.security.get_or_insert_default().push(requirement);
        let tags = operation.tags.as_deref().unwrap_or_default();
        if tags.iter().any(|tag| tag == "Deprecated") {
            operation.deprecated = Some(Deprecated::True);
        }
        let responses = &mut operation.responses.responses;
        let internal = problem("Something went wrong on our side.");
        responses.insert("500".to_owned(), internal);
        let busy = problem("The node has too much to do for this tenant (`busy`).");
        responses.entry("503".to_owned()).or_insert(busy);
    }
    let info = InfoBuilder::new()
        .title("Cloakroom")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").build()))
        .build();
    let mut document = OpenApiBuilder::new().info(info).build();
    document.merge(open);
    document.merge(keyed);
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        complete(operation);
    }
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("BT-API-KEY")));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(KEY_SCHEME, scheme);
    let trace = ParameterBuilder::new()
        .name("BT-TRACE-ID")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "Comes back with the answer and stands in the log; one that is longer than 200 \
             characters, or not printable ASCII, is replaced.",
        ))
        .schema(Some(Object::with_type(Type::String)))
        .build();
    let trace = RefOr::T(trace);
    components.parameters.insert("TraceId".to_owned(), trace);
    let once = ParameterBuilder::new()
        .name("BT-IDEMPOTENCY-KEY")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "With it the request is done once: sent again within 24 hours, it does nothing and gets \
             the same answer. A failure leaves the key free. 1 to 255 printable ASCII characters.",
        ))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .max_length(Some(255))
                .pattern(Some("^[ -~]*$")),
        ))
        .build();
    let once = RefOr::T(once);
    components
        .parameters
        .insert("IdempotencyKey".to_owned(), once);
    let trace = header(Type::String, "The request's own trace id, or a new one.");
    components.headers.insert("TraceId".to_owned(), trace);
    let wait = header(Type::Integer, "Seconds to wait before trying again.");
    components.headers.insert("RetryAfter".to_owned(), wait);
    document
}

/// Removed operations change nothing, so there is nothing to do once.
fn succeeds(operation: &Operation) -> bool {
    let statuses = operation.responses.responses.keys();
    statuses.into_iter().any(|status| status.starts_with('2'))
}

/// What a request with an idempotency key may be told in addition.
fn answer_once(operation: &mut Operation) {
    let key = RefOr::Ref(Ref::new("#/components/parameters/IdempotencyKey"));
    operation.parameters.get_or_insert_default().push(key);
    let also = "The first request with this idempotency key still runs.";
    let responses = &mut operation.responses.responses;
    match responses.get_mut("409") {
        Some(RefOr::T(conflict)) => {
            conflict.description = format!("{} Or: {also}", conflict.description)
        }
        _ => {
            responses.insert("409".to_owned(), problem(also));
        }
    }
    responses
        .entry("400".to_owned())
        .or_insert_with(|| problem("The idempotency key is not one."));
    let other_body = "With `idempotency.refuse_other_bodies`: the key was used with another body.";
    responses
        .entry("422".to_owned())
        .or_insert_with(|| problem(other_body));
}

/// What every operation takes and answers besides its own.
fn complete(operation: &mut Operation) {
    let trace = RefOr::Ref(Ref::new("#/components/parameters/TraceId"));
    operation.parameters.get_or_insert_default().push(trace);
    // The annotation of a route has no word for it but this one.
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && let Some(said) = &body.description
        && said.starts_with("Optional")
    {
        body.required = Some(Required::False);
    }
    let too_many = problem("More requests than a limit allows (`rate_limited`).");
    let responses = &mut operation.responses.responses;
    responses.insert("429".to_owned(), too_many);
    for (status, response) in responses {
        let RefOr::T(response) = response else {
            continue;
        };
        if status.as_str() >= "400" {
            answer_with_a_problem(response);
        }
        for stated in response.headers.values_mut() {
            if let RefOr::T(stated) = stated {
                state_required(stated);
            }
        }
        let trace = RefOr::Ref(Ref::new("#/components/headers/TraceId"));
        response.headers.insert("BT-TRACE-ID".to_owned(), trace);
        if status == "429" || status == "503" {
            let wait = RefOr::Ref(Ref::new("#/components/headers/RetryAfter"));
            response.headers.insert("Retry-After".to_owned(), wait);
        }
    }
}

/// Routes only say that the body is a Problem; this is how it is sent.
fn answer_with_a_problem(response: &mut response::Response) {
    if let Some(content) = response.content.shift_remove("application/json") {
        let media_type = "application/problem+json".to_owned();
        response.content.insert(media_type, content);
    }
}

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
    state_required(&mut header);
    RefOr::T(header)
}

/// Every header that is described is always sent. The type has no member for that, but writes out
/// whatever extensions it has.
fn state_required(header: &mut Header) {
    header.extensions = Some(Extensions::from_iter([("required", true)]));
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
