//! Lists and searches over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::list::Listed;
use super::list_old::OldListed;
use super::page::SIZE_MAX;
use super::{Error, Page, parameters, query};
use crate::access::{Container, Permission};
use crate::api::{Answer, ApiError, Broken, JsonBody, NumberedPage, NumberedPageBody, Problem};
use crate::caller::Caller;
use crate::deprecations::Deprecated;
use crate::token_queries as queries;
use crate::token_types::TokenKind;
use crate::tokens::TokenBody;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_tokens))
        .routes(routes!(search_tokens))
        .routes(routes!(list_tokens_old))
        .routes(routes!(search_tokens_old))
}

/// List tokens.
///
/// Needs `token:read`; each token is shown as the rule for its container says, and tokens that no
/// rule covers are left out. Sorted by container, then by time, both descending. `container` holds
/// everything below it as well, and goes together with one of `type`, `fingerprint` and `metadata`.
#[utoipa::path(
    get,
    path = "/v2/tokens",
    tag = "Tokens",
    params(
        ("container" = Option<Container>, Query, description = "This container and those below it."),
        ("type" = Option<TokenKind>, Query, description = "Tokens of this type."),
        ("fingerprint" = Option<String>, Query, description = "Tokens with this fingerprint.",
         max_length = 100, pattern = "^[A-Za-z0-9]+$"),
        ("metadata" = Option<BTreeMap<String, String>>, Query, style = DeepObject, explode,
         description = "One entry, compared exactly: `metadata[key]=value`, `metadata.key=value` or \
                        `metadata={\"key\":\"value\"}`."),
        ("start" = Option<String>, Query, description = "The `next` of the page before.",
         max_length = 500),
        ("size" = Option<u8>, Query, description = "Tokens on a page, 20 without it.",
         minimum = 0, maximum = 100),
    ),
    responses(
        (status = 200, description = "A page of tokens.", body = PageBody<'_>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_tokens(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::TokenRead)?;
    let read = parameters::read(query.as_deref().unwrap_or_default());
    let (filter, page) = read.map_err(ApiError::all_invalid)?;
    let listed = queries::list(&vault, &caller, &filter, &page).await?;
    Answer::ok(&PageBody::new(&caller, &listed))
}

/// Search tokens.
///
/// Needs `token:search`. The query is one of `container:"/a/"`, `type:card`, `fingerprint:…`,
/// `metadata.key:value` and `data:value`, and may be joined by `AND` with a container. `data` finds
/// tokens by the value of one of their search indexes. Everything is compared exactly.
#[utoipa::path(
    post,
    path = "/v2/tokens/search",
    tag = "Tokens",
    request_body(content = SearchBody, examples(
        ("data" = (summary = "By a search index", value = json!({"query": "data:\"Ada Lovelace\""}))),
        ("metadata" = (summary = "By metadata, in a container", value = json!({
            "query": "metadata.order:1001 AND container:\"/pci/\"", "size": 50
        }))),
    )),
    responses(
        (status = 200, description = "A page of tokens.", body = PageBody<'_>),
        (status = 400, description = "The query is not supported.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 429, description = "Too many card numbers were tried.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn search_tokens(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::TokenSearch)?;
    let body = body?;
    let search: SearchBody = body.read()?;
    let mut broken = Vec::new();
    let filter = collect(
        query::parse(search.query.as_deref()).map_err(|rule| vec![rule]),
        &mut broken,
    );
    let page = collect(Page::new(search.size, search.start), &mut broken);
    let (Some(filter), Some(page)) = (filter, page) else {
        return Err(ApiError::all_invalid(broken));
    };
    let listed = queries::search(&vault, &caller, &filter, &page).await?;
    Answer::ok(&PageBody::new(&caller, &listed))
}

/// List tokens, the older way.
///
/// Deprecated: use `/v2/tokens`. Needs `token:read`. Sorted by time, descending. Several `id` and
/// several metadata entries may be named; metadata is compared without regard to case.
#[utoipa::path(
    get,
    path = "/tokens",
    tag = "Deprecated",
    params(
        ("id" = Option<Vec<String>>, Query, description = "Tokens with one of these ids.",
         max_items = 100),
        ("metadata" = Option<BTreeMap<String, String>>, Query, style = DeepObject, explode,
         description = "Several entries: `metadata[key]=value`, `metadata.key=value` or \
                        `metadata={\"key\":\"value\"}`."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Tokens on a page, 20 without it.",
         minimum = 0, maximum = 100),
    ),
    responses(
        (status = 200, description = "A page of tokens.", body = NumberedPageBody<TokenBody<'_>>,
         headers(("Deprecation" = String), ("Sunset" = String), ("Link" = String))),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 410, description = "This vault no longer serves it.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_tokens_old(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    let settings = &vault.config.deprecated;
    caller.uses.ask_for(Deprecated::ListTokensV1, settings)?;
    caller.require_somewhere(Permission::TokenRead)?;
    let read = parameters::read_old(query.as_deref().unwrap_or_default());
    let (filter, page) = read.map_err(ApiError::all_invalid)?;
    let listed = queries::list_old(&vault, &caller, &filter, page).await?;
    Answer::ok(&numbered(&caller, &listed, page))
}

/// Search tokens, the older way.
///
/// Deprecated: use `/v2/tokens/search`. Needs `token:search`. The query is one of `id:…`, `data:…`
/// and `metadata.key:value`, or several of the last joined by `AND`.
#[utoipa::path(
    post,
    path = "/tokens/search",
    tag = "Deprecated",
    request_body(content = OldSearchBody, examples(
        ("metadata" = (summary = "By two entries of metadata", value = json!({
            "query": "metadata.order:1001 AND metadata.shop:eu", "page": 1
        }))),
    )),
    responses(
        (status = 200, description = "A page of tokens.", body = NumberedPageBody<TokenBody<'_>>,
         headers(("Deprecation" = String), ("Sunset" = String), ("Link" = String))),
        (status = 400, description = "The query is not supported.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 410, description = "This vault no longer serves it.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 429, description = "Too many card numbers were tried.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn search_tokens_old(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    let settings = &vault.config.deprecated;
    caller.uses.ask_for(Deprecated::SearchTokensV1, settings)?;
    caller.require_somewhere(Permission::TokenSearch)?;
    let body = body?;
    let search: OldSearchBody = body.read()?;
    let mut broken = Vec::new();
    let filter = collect(
        query::parse_old(search.query.as_deref()).map_err(|rule| vec![rule]),
        &mut broken,
    );
    if broken.iter().any(query::is_complex) {
        caller.uses.note(Deprecated::ComplexSearch);
    }
    let page = collect(
        NumberedPage::new(search.page, search.size, SIZE_MAX),
        &mut broken,
    );
    let (Some(filter), Some(page)) = (filter, page) else {
        return Err(ApiError::all_invalid(broken));
    };
    let listed = queries::search_old(&vault, &caller, &filter, page).await?;
    Answer::ok(&numbered(&caller, &listed, page))
}

fn collect<T>(result: Result<T, Vec<Broken>>, broken: &mut Vec<Broken>) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

/// What to search for.
#[derive(Deserialize, ToSchema)]
struct SearchBody {
    /// Up to 200 characters; without it, everything is found.
    #[schema(max_length = 200)]
    query: Option<String>,
    /// The `next` of the page before.
    #[schema(max_length = 500)]
    start: Option<String>,
    /// Tokens on a page, 20 without it.
    #[schema(minimum = 0, maximum = 100)]
    size: Option<i64>,
}

/// What to search for, the older way.
#[derive(Deserialize, ToSchema)]
struct OldSearchBody {
    /// Up to 200 characters; without it, everything is found.
    #[schema(max_length = 200)]
    query: Option<String>,
    /// Counted from 1.
    #[schema(minimum = 1, maximum = 2147483647)]
    page: Option<i64>,
    /// Tokens on a page, 20 without it.
    #[schema(minimum = 0, maximum = 100)]
    size: Option<i64>,
}

/// A page of tokens.
#[derive(Serialize, ToSchema)]
struct PageBody<'a> {
    pagination: PaginationBody<'a>,
    data: Vec<TokenBody<'a>>,
}

#[derive(Serialize, ToSchema)]
struct PaginationBody<'a> {
    /// Tokens on this page.
    page_size: usize,
    /// Where the next page starts; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<&'a str>,
}

impl<'a> PageBody<'a> {
    fn new(caller: &Caller, listed: &'a Listed) -> Self {
        Self {
            pagination: PaginationBody {
                page_size: listed.tokens.len(),
                next: listed.next.as_deref(),
            },
            data: bodies(caller, &listed.tokens),
        }
    }
}

fn numbered<'a>(
    caller: &Caller,
    listed: &'a OldListed,
    page: NumberedPage,
) -> NumberedPageBody<TokenBody<'a>> {
    NumberedPageBody::new(page, listed.total, bodies(caller, &listed.tokens))
}

fn bodies<'a>(caller: &Caller, tokens: &'a [crate::tokens::TokenView]) -> Vec<TokenBody<'a>> {
    tokens
        .iter()
        .map(|view| TokenBody::new(caller, view))
        .collect()
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Tokens(error) => error.into(),
            Error::Velocity(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
