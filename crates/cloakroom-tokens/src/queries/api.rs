//! HTTP interface of lists and searches.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::{Container, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, FieldError, JsonBody, NumberedPage, NumberedPageBody, Problem,
    QueryErrors, ReadErrors,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::list::TokenPage;
use super::list_v1::TokenPageV1;
use super::page::SIZE_MAX;
use super::{Error, Page, parameters, query};
use crate::queries;
use crate::tokens::{TokenBody, TokenVault};
use crate::types::TokenKind;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(list_tokens))
        .routes(routes!(search_tokens))
        .routes(routes!(list_tokens_old))
        .routes(routes!(search_tokens_old))
}

/// List tokens.
///
/// Requires `token:read`. The access rule for its container determines the transform of each token; tokens without a
/// matching rule are omitted. Tokens are sorted by container, then by creation time, both descending. `container`
/// includes the containers below it and can be combined with one of `type`, `fingerprint` and `metadata`.
#[utoipa::path(
    get, path = "/v2/tokens", tag = "Tokens",
    params(
        ("container" = Option<Container>, Query, description = "Tokens in this container and those below it."),
        ("type" = Option<TokenKind>, Query, description = "Tokens of this type."),
        ("fingerprint" = Option<String>, Query, description = "Tokens with this fingerprint.",
         max_length = 100, pattern = "^[A-Za-z0-9]+$"),
        ("metadata" = Option<BTreeMap<String, String>>, Query, style = DeepObject, explode,
         description = "One entry, compared exactly: `metadata[key]=value`, `metadata.key=value` or \
                        `metadata={\"key\":\"value\"}`."),
        ("start" = Option<String>, Query, description = "The `next` of the previous page.", max_length = 500),
        ("size" = Option<u8>, Query, description = "Tokens per page. Defaults to 20.", minimum = 0, maximum = 100),
    ),
    responses(ReadErrors, QueryErrors, (status = 200, description = "A page of tokens.", body = PageBody<'_>)),
)]
async fn list_tokens(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::TokenRead)?;
    let parsed = parameters::parse(query.as_deref().unwrap_or_default());
    let (filter, page) = parsed.map_err(ApiError::all_invalid)?;
    let listed = queries::list(&vault, &caller, &filter, &page).await?;
    Answer::ok(&PageBody::new(&caller, &listed))
}

/// Search tokens.
///
/// Requires `token:search`. The query is one of `container:"/a/"`, `type:card`, `fingerprint:…`, `metadata.key:value`
/// and `data:value`, optionally joined with a container by `AND`. `data` finds tokens by the value of one of their
/// search indexes. All comparisons are exact.
#[utoipa::path(
    post, path = "/v2/tokens/search", tag = "Tokens",
    request_body = SearchBody,
    responses(
        ReadErrors, BodyErrors,
        (status = 200, description = "A page of tokens.", body = PageBody<'_>),
        (status = 400, description = "The query is not supported.", body = Problem),
        (status = 429, description = "The card velocity limit is exceeded.", body = Problem),
    ),
)]
async fn search_tokens(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::TokenSearch)?;
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

/// List tokens (v1).
///
/// Deprecated: use `/v2/tokens`. Requires `token:read`. Tokens are sorted by creation time, descending. Several `id`
/// and several metadata entries may be given. Metadata is compared case-insensitively.
#[utoipa::path(
    get, path = "/tokens", tag = "Deprecated",
    params(
        ("id" = Option<Vec<String>>, Query, description = "Tokens with one of these ids.", max_items = 100),
        ("metadata" = Option<BTreeMap<String, String>>, Query, style = DeepObject, explode,
         description = "Several entries: `metadata[key]=value`, `metadata.key=value` or \
                        `metadata={\"key\":\"value\"}`."),
        ("page" = Option<u32>, Query, description = "The page number, starting at 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Tokens per page. Defaults to 20.", minimum = 0, maximum = 100),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "A page of tokens.", body = NumberedPageBody<TokenBody<'_>>,
         headers(("Deprecation" = String), ("Sunset" = String), ("Link" = String))),
        (status = 410, description = "This endpoint is disabled.", body = Problem),
    ),
)]
async fn list_tokens_old(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    let settings = &vault.config.deprecated;
    caller
        .deprecated_features
        .mark_or_reject(DeprecatedFeature::ListTokensV1, settings)?;
    caller.require_anywhere(Permission::TokenRead)?;
    let parsed = parameters::parse_v1(query.as_deref().unwrap_or_default());
    let (filter, page) = parsed.map_err(ApiError::all_invalid)?;
    let listed = queries::list_v1(&vault, &caller, &filter, page).await?;
    Answer::ok(&numbered(&caller, &listed, page))
}

/// Search tokens (v1).
///
/// Deprecated: use `/v2/tokens/search`. Requires `token:search`. The query is one of `id:…`, `data:…` and
/// `metadata.key:value`, or several metadata terms joined by `AND`.
#[utoipa::path(
    post, path = "/tokens/search", tag = "Deprecated",
    request_body = OldSearchBody,
    responses(
        ReadErrors, BodyErrors,
        (status = 200, description = "A page of tokens.", body = NumberedPageBody<TokenBody<'_>>,
         headers(("Deprecation" = String), ("Sunset" = String), ("Link" = String))),
        (status = 400, description = "The query is not supported.", body = Problem),
        (status = 410, description = "This endpoint is disabled.", body = Problem),
        (status = 429, description = "The card velocity limit is exceeded.", body = Problem),
    ),
)]
async fn search_tokens_old(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    let settings = &vault.config.deprecated;
    caller
        .deprecated_features
        .mark_or_reject(DeprecatedFeature::SearchTokensV1, settings)?;
    caller.require_anywhere(Permission::TokenSearch)?;
    let body = body?;
    let search: OldSearchBody = body.read()?;
    let mut broken = Vec::new();
    let filter = collect(
        query::parse_old(search.query.as_deref()).map_err(|rule| vec![rule]),
        &mut broken,
    );
    if broken.iter().any(query::is_complex) {
        caller
            .deprecated_features
            .mark(DeprecatedFeature::ComplexSearch);
    }
    let page = collect(
        NumberedPage::new(search.page, search.size, SIZE_MAX),
        &mut broken,
    );
    let (Some(filter), Some(page)) = (filter, page) else {
        return Err(ApiError::all_invalid(broken));
    };
    let listed = queries::search_v1(&vault, &caller, &filter, page).await?;
    Answer::ok(&numbered(&caller, &listed, page))
}

fn collect<T>(result: Result<T, Vec<FieldError>>, broken: &mut Vec<FieldError>) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

/// A search.
#[derive(Deserialize, ToSchema)]
struct SearchBody {
    /// Up to 200 characters. Without it, all tokens match.
    #[schema(max_length = 200)]
    query: Option<String>,
    /// The `next` of the previous page.
    #[schema(max_length = 500)]
    start: Option<String>,
    /// Tokens per page. Defaults to 20.
    #[schema(minimum = 0, maximum = 100)]
    size: Option<i64>,
}

/// A search (v1).
#[derive(Deserialize, ToSchema)]
struct OldSearchBody {
    /// Up to 200 characters. Without it, all tokens match.
    #[schema(max_length = 200)]
    query: Option<String>,
    /// The page number, starting at 1.
    #[schema(minimum = 1, maximum = 2147483647)]
    page: Option<i64>,
    /// Tokens per page. Defaults to 20.
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
    fn new(caller: &Caller, listed: &'a TokenPage) -> Self {
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
    listed: &'a TokenPageV1,
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
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Tokens(error) => error.into(),
            Error::Velocity(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
