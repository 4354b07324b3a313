//! Connection formulas over HTTP.
//!
//! The interface spells the path in two ways and lists with `POST` as well as with `GET`. All of them
//! are the same handlers, so they cannot come to differ.

use std::str::FromStr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use cloakroom_formulas::Filter;
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
use super::{Error, Listed};
use crate::access::Permission;
use crate::api::{
    Answer, ApiError, Broken, NumberedPage, NumberedPageBody, PathId, Problem, Query,
};
use crate::caller::Caller;
use crate::formulas;
use crate::vault::Vault;

const PAGE_SIZE_MAX: usize = 100;
const PATH: &str = "/orchestration/connection_formulas";
const OTHER_SPELLING: &str = "/orchestration/connection/formulas";
const FILTERS: [&str; 5] = ["id", "method", "currency", "country", "feature"];

/// Clients may keep an answer, and ask each time whether it is still the same.
const KEPT_BY_THE_CLIENT: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::with_openapi(Parameters::openapi())
        .routes(routes!(list_formulas, list_formulas_by_post))
        .routes(routes!(find_formula))
        .routes(spelled_otherwise(routes!(
            list_formulas,
            list_formulas_by_post
        )))
        .routes(spelled_otherwise(routes!(find_formula)))
}

/// The same routes under the other path, described as an alias.
fn spelled_otherwise(routes: UtoipaMethodRouter<Vault>) -> UtoipaMethodRouter<Vault> {
    let (schemas, paths, methods) = routes;
    let mut others = Paths::new();
    for (path, mut item) in paths.paths {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            let said = operation.description.get_or_insert_default();
            said.push_str(&format!("\n\nAn alias of `{path}`."));
            if let Some(id) = &mut operation.operation_id {
                id.push_str("_alias");
            }
        }
        let path = path.replacen(PATH, OTHER_SPELLING, 1);
        others.paths.insert(path, item);
    }
    (schemas, others, methods)
}

/// List connection formulas.
///
/// Needs `orchestration:connection_formulas`. By id. A formula is listed if everything that is given
/// holds: it has one of the ids and methods, and supports every currency, country and feature.
#[utoipa::path(
    get,
    path = "/orchestration/connection_formulas",
    tag = "Connection formulas",
    params(
        ("id" = Option<Vec<String>>, Query, description = "Formulas with one of these ids."),
        ("method" = Option<Vec<FormulaMethodBody>>, Query,
         description = "Formulas with one of these methods."),
        ("currency" = Option<Vec<CurrencyBody>>, Query,
         description = "Formulas that support all of these currencies."),
        ("country" = Option<Vec<CountryBody>>, Query,
         description = "Formulas that support all of these countries."),
        ("feature" = Option<Vec<FormulaFeatureBody>>, Query,
         description = "Formulas that support all of these features."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Formulas on a page, 20 without it.",
         minimum = 0, maximum = 100),
        ("If-None-Match" = Option<String>, Header, description = "Tags of answers that you have."),
    ),
    responses(
        (status = 200, description = "A page of formulas.", body = NumberedPageBody<FormulaBody>,
         headers(("ETag" = String, description = "The tag of this answer."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 304, description = "You have this answer.",
         headers(("ETag" = String, description = "The tag of this answer."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
    ),
)]
async fn list_formulas(
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let page = page_of(&caller, query.as_deref())?;
    answer(&page, Some(&headers))
}

/// List connection formulas with POST.
///
/// Needs `orchestration:connection_formulas`. The same as `GET`, with the same parameters in the address.
/// A body is ignored, whatever it is, and so is an idempotency key: nothing is changed.
#[utoipa::path(
    post,
    path = "/orchestration/connection_formulas",
    tag = "Connection formulas",
    params(
        ("id" = Option<Vec<String>>, Query, description = "Formulas with one of these ids."),
        ("method" = Option<Vec<FormulaMethodBody>>, Query,
         description = "Formulas with one of these methods."),
        ("currency" = Option<Vec<CurrencyBody>>, Query,
         description = "Formulas that support all of these currencies."),
        ("country" = Option<Vec<CountryBody>>, Query,
         description = "Formulas that support all of these countries."),
        ("feature" = Option<Vec<FormulaFeatureBody>>, Query,
         description = "Formulas that support all of these features."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Formulas on a page, 20 without it.",
         minimum = 0, maximum = 100),
    ),
    responses(
        (status = 200, description = "A page of formulas.", body = NumberedPageBody<FormulaBody>,
         headers(("ETag" = String, description = "The tag of this answer."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
    ),
)]
async fn list_formulas_by_post(
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let page = page_of(&caller, query.as_deref())?;
    answer(&page, None)
}

/// Read a connection formula.
///
/// Needs `orchestration:connection_formulas`.
#[utoipa::path(
    get,
    path = "/orchestration/connection_formulas/{id}",
    tag = "Connection formulas",
    params(
        ("id" = String, Path, description = "The formula's id."),
        ("If-None-Match" = Option<String>, Header, description = "Tags of answers that you have."),
    ),
    responses(
        (status = 200, description = "The formula.", body = FormulaBody,
         headers(("ETag" = String, description = "The tag of this answer."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 304, description = "You have this answer.",
         headers(("ETag" = String, description = "The tag of this answer."),
                 ("Cache-Control" = String, description = "Always `private, no-cache`."))),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such formula.", body = Problem),
    ),
)]
async fn find_formula(
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let formula = formulas::find(&caller, &id)?;
    answer(formula, Some(&headers))
}

fn page_of(caller: &Caller, query: Option<&str>) -> Result<impl Serialize, ApiError> {
    caller.require_plain(Permission::ConnectionFormulas)?;
    let (filter, page) = read_query(query).map_err(ApiError::all_invalid)?;
    let Listed { items, total } = formulas::list(caller, &filter, page)?;
    Ok(NumberedPageBody::new(page, total, items))
}

fn read_query(text: Option<&str>) -> Result<(Filter, NumberedPage), Vec<Broken>> {
    let known = [&FILTERS[..], &["page", "size"]].concat();
    let mut query = Query::decode(text, &known);
    let filter = Filter {
        ids: query.all("id"),
        methods: each(&mut query, "method"),
        currencies: each(&mut query, "currency"),
        countries: each(&mut query, "country"),
        features: each(&mut query, "feature"),
    };
    let page = NumberedPage::new(query.number("page"), query.number("size"), PAGE_SIZE_MAX);
    query.settle(filter, page)
}

/// Every value of a parameter, as far as they can be what they should.
fn each<T: FromStr<Err: ToString>>(query: &mut Query, name: &str) -> Vec<T> {
    let given = query.all(name).into_iter();
    let parsed = given.map(|text| text.parse().map_err(|rule: T::Err| rule.to_string()));
    let parsed: Vec<_> = parsed.collect();
    let read = parsed.into_iter();
    read.filter_map(|value| query.check(name, value)).collect()
}

/// Sends a body with its tag; only the tag to those who ask with `known` and have it.
fn answer(body: &impl Serialize, known: Option<&HeaderMap>) -> Result<Response, ApiError> {
    let answer = Answer::ok(body)?;
    let tag = EntityTag::of(&answer.body).map_err(|_| ApiError::internal("answer_not_tagged"))?;
    let is_known = known.is_some_and(|headers| tag.is_known(headers));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => answer.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag.0);
    headers.insert(CACHE_CONTROL, KEPT_BY_THE_CLIENT);
    Ok(response)
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::NotFound => Self::not_found("There is no such connection formula."),
        }
    }
}
