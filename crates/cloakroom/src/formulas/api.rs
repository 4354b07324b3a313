//! HTTP routes of connection formulas.
//!
//! The API has two spellings of the path, and lists with `POST` as well as with `GET`. All of them share the same
//! handlers.

use std::str::FromStr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_formulas::Filter;
use cloakroom_platform::api::{
    AccessErrors, Answer, ApiError, FieldError, NumberedPage, NumberedPageBody, PathId, Problem,
    Query, QueryErrors,
};
use http::header::{CACHE_CONTROL, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::OpenApi as _;
use utoipa::openapi::path::Paths;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::body::{
    CountryBody, CurrencyBody, FormulaBody, FormulaFeatureBody, FormulaMethodBody, Parameters,
};
use super::etag::EntityTag;
use super::{Error, FormulaPage};
use crate::formulas;

const PAGE_SIZE_MAX: usize = 100;
const PATH: &str = "/orchestration/connection_formulas";
const ALIAS_PATH: &str = "/orchestration/connection/formulas";
const FILTERS: [&str; 5] = ["id", "method", "currency", "country", "feature"];

/// Clients may cache a response, and must revalidate it before each use.
const REVALIDATE: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The routes of this module.
pub fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::with_openapi(Parameters::openapi())
        .routes(routes!(list_formulas, list_formulas_by_post))
        .routes(routes!(find_formula))
        .routes(alias(routes!(list_formulas, list_formulas_by_post)))
        .routes(alias(routes!(find_formula)))
}

/// The same routes under the alternative path, documented as aliases.
fn alias<S: Clone + Send + Sync + 'static>(routes: UtoipaMethodRouter<S>) -> UtoipaMethodRouter<S> {
    let (schemas, paths, methods) = routes;
    let mut others = Paths::new();
    for (path, mut item) in paths.paths {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            let description = operation.description.get_or_insert_default();
            description.push_str(&format!("\n\nAn alias of `{path}`."));
            if let Some(id) = &mut operation.operation_id {
                id.push_str("_alias");
            }
        }
        let path = path.replacen(PATH, ALIAS_PATH, 1);
        others.paths.insert(path, item);
    }
    (schemas, others, methods)
}

/// List connection formulas.
///
/// Requires `orchestration:connection_formulas`. Sorted by id. Lists the formulas that match all given filters: with
/// one of the ids and methods, and with support for every currency, country and feature.
#[utoipa::path(
    get, path = "/orchestration/connection_formulas", tag = "Connection formulas",
    params(
        ("id" = Option<Vec<String>>, Query, description = "Formulas with one of these ids."),
        ("method" = Option<Vec<FormulaMethodBody>>, Query, description = "Formulas with one of these methods."),
        ("currency" = Option<Vec<CurrencyBody>>, Query, description = "Formulas that support all of these currencies."),
        ("country" = Option<Vec<CountryBody>>, Query, description = "Formulas that support all of these countries."),
        ("feature" = Option<Vec<FormulaFeatureBody>>, Query,
         description = "Formulas that support all of these features."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Formulas per page; 20 by default.", minimum = 0, maximum = 100),
        ("If-None-Match" = Option<String>, Header, description = "Entity tags of cached responses."),
    ),
    responses(
        AccessErrors, QueryErrors,
        (status = 200, description = "A page of formulas.", body = NumberedPageBody<FormulaBody>,
         headers(("ETag" = String, description = "The entity tag of the response."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 304, description = "The cached response is current.",
         headers(("ETag" = String, description = "The entity tag of the response."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
    ),
)]
async fn list_formulas(
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let page = read_page(&caller, query.as_deref())?;
    respond(&page, Some(&headers))
}

/// List connection formulas with POST.
///
/// Requires `orchestration:connection_formulas`. The same as `GET`, with the same query parameters. The request body is
/// ignored, and so is an idempotency key: nothing is changed.
#[utoipa::path(
    post, path = "/orchestration/connection_formulas", tag = "Connection formulas",
    params(
        ("id" = Option<Vec<String>>, Query, description = "Formulas with one of these ids."),
        ("method" = Option<Vec<FormulaMethodBody>>, Query, description = "Formulas with one of these methods."),
        ("currency" = Option<Vec<CurrencyBody>>, Query, description = "Formulas that support all of these currencies."),
        ("country" = Option<Vec<CountryBody>>, Query, description = "Formulas that support all of these countries."),
        ("feature" = Option<Vec<FormulaFeatureBody>>, Query,
         description = "Formulas that support all of these features."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Formulas per page; 20 by default.", minimum = 0, maximum = 100),
    ),
    responses(
        AccessErrors, QueryErrors,
        (status = 200, description = "A page of formulas.", body = NumberedPageBody<FormulaBody>,
         headers(("ETag" = String, description = "The entity tag of the response."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
    ),
)]
async fn list_formulas_by_post(
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let page = read_page(&caller, query.as_deref())?;
    respond(&page, None)
}

/// Read a connection formula.
///
/// Requires `orchestration:connection_formulas`.
#[utoipa::path(
    get, path = "/orchestration/connection_formulas/{id}", tag = "Connection formulas",
    params(
        ("id" = String, Path, description = "The formula's id."),
        ("If-None-Match" = Option<String>, Header, description = "Entity tags of cached responses."),
    ),
    responses(
        AccessErrors,
        (status = 200, description = "The formula.", body = FormulaBody,
         headers(("ETag" = String, description = "The entity tag of the response."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 304, description = "The cached response is current.",
         headers(("ETag" = String, description = "The entity tag of the response."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 404, description = "No such formula.", body = Problem),
    ),
)]
async fn find_formula(
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let formula = formulas::find(&caller, &id)?;
    respond(formula, Some(&headers))
}

fn read_page(caller: &Caller, query: Option<&str>) -> Result<impl Serialize, ApiError> {
    caller.require_plain(Permission::ConnectionFormulas)?;
    let (filter, page) = read_query(query).map_err(ApiError::all_invalid)?;
    let FormulaPage { items, total } = formulas::list(caller, &filter, page)?;
    Ok(NumberedPageBody::new(page, total, items))
}

fn read_query(text: Option<&str>) -> Result<(Filter, NumberedPage), Vec<FieldError>> {
    let known = [&FILTERS[..], &["page", "size"]].concat();
    let mut query = Query::decode(text, &known);
    let filter = Filter {
        ids: query.all("id"),
        methods: parse_each(&mut query, "method"),
        currencies: parse_each(&mut query, "currency"),
        countries: parse_each(&mut query, "country"),
        features: parse_each(&mut query, "feature"),
    };
    let page = NumberedPage::new(query.number("page"), query.number("size"), PAGE_SIZE_MAX);
    query.finish(filter, page)
}

/// Parses every value of a parameter; records invalid ones as errors.
fn parse_each<T: FromStr<Err: ToString>>(query: &mut Query, name: &str) -> Vec<T> {
    let given = query.all(name).into_iter();
    let parsed = given.map(|text| text.parse().map_err(|rule: T::Err| rule.to_string()));
    let parsed: Vec<_> = parsed.collect();
    let read = parsed.into_iter();
    read.filter_map(|value| query.check(name, value)).collect()
}

/// Responds with a body and its entity tag, or with 304 if `known` contains the tag.
fn respond(body: &impl Serialize, known: Option<&HeaderMap>) -> Result<Response, ApiError> {
    let full = Answer::ok(body)?;
    let tag = EntityTag::of(&full.body).map_err(|_| ApiError::internal("response_not_tagged"))?;
    let is_current = known.is_some_and(|headers| tag.matches_any(headers));
    let mut response = match is_current {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => full.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag.0);
    headers.insert(CACHE_CONTROL, REVALIDATE);
    Ok(response)
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::NotFound => Self::not_found("There is no such connection formula."),
        }
    }
}
