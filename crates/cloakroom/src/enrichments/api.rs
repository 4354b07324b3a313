//! Enrichments over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Error;
use super::bank_account::{Asked, verify_bank_account};
use crate::access::{ApplicationKind, Permission};
use crate::api::{Answer, ApiError, JsonBody, Problem, Query};
use crate::bins::CardDetails;
use crate::caller::Caller;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(verify_account))
        .routes(routes!(find_card_details))
}

/// Verify a bank account.
///
/// Needs `token:use` in the token's container. Without a provider, the published test accounts have
/// their published answers and all others are `inconclusive`.
#[utoipa::path(
    post,
    path = "/enrichments/bank-account-verify",
    tag = "Enrichments",
    request_body(content = AccountBody, examples(
        ("bank" = (summary = "The account of a token", value = json!({
            "token_id": "c06d0789-0a38-40be-b7cc-c28a718f76f1"
        }))),
    )),
    responses(
        (status = 200, description = "What is known about the account.", body = VerificationBody),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission there.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn verify_account(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_somewhere(Permission::TokenUse)?;
    let body = body?;
    let body: AccountBody = body.read()?;
    let asked = Asked {
        token_id: body.token_id,
        country_code: body.country_code,
        routing_number: body.routing_number,
    };
    let status = verify_bank_account(&vault, &caller, &asked).await?;
    Answer::ok(&VerificationBody {
        status: status.name(),
    })
}

/// Tell what is known about the first digits of a card.
///
/// Needs a key of a private or public application.
#[utoipa::path(
    get,
    path = "/enrichments/card-details",
    tag = "Enrichments",
    params(("bin" = String, Query, description = "The first 6 to 8 digits.", min_length = 6,
            max_length = 8, pattern = "^[0-9]{6,8}$")),
    responses(
        (status = 200, description = "What is known; nothing for an unknown BIN.", body = BinBody),
        (status = 400, description = "The BIN is not 6 to 8 digits.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key is one of a management application.", body = Problem),
    ),
)]
async fn find_card_details(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    if caller.application_kind == ApplicationKind::Management {
        let detail = "Management applications have nothing to do with cards.";
        return Err(ApiError::forbidden(detail));
    }
    let mut given = Query::decode(query.as_deref(), &["bin"]);
    let bin = given.once("bin").unwrap_or_default();
    if !(6..=8).contains(&bin.len()) || !bin.bytes().all(|byte| byte.is_ascii_digit()) {
        given.refuse("bin", "must be 6 to 8 digits");
    }
    let (bin, ()) = given.settle(bin, Ok(())).map_err(ApiError::all_invalid)?;
    // A BIN stands for its first number of 16 digits.
    let details = CardDetails::of(&vault.bins, caller.tenant_kind, &format!("{bin:0<16}"));
    Answer::ok(&BinBody::new(details))
}

/// An account to verify.
#[derive(Deserialize, ToSchema)]
struct AccountBody {
    /// A token of the type `bank` or `us_bank_account_number`.
    #[schema(min_length = 1, required)]
    token_id: Option<String>,
    /// `US`, which is also what holds without it.
    #[schema(pattern = "^US$")]
    country_code: Option<String>,
    /// Nine digits; for account numbers, and required for them.
    #[schema(pattern = "^[0-9]{9}$")]
    routing_number: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct VerificationBody {
    /// `enabled`, `disabled` or `inconclusive`.
    status: &'static str,
}

/// What is known about a BIN, spelled for people. Members that nobody knows are left out.
#[derive(Default, Serialize, ToSchema)]
struct BinBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    brand: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    funding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    segment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    issuer: Option<IssuerBody>,
    /// Further entries for the same BIN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, no_recursion)]
    additional: Vec<BinBody>,
}

#[derive(Serialize, ToSchema)]
struct IssuerBody {
    /// ISO 3166-1 alpha-2
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    country: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
}

impl BinBody {
    fn new(details: Option<CardDetails>) -> Self {
        let Some(details) = details else {
            return Self::default();
        };
        let issuer = |issuer: crate::bins::Issuer| IssuerBody {
            country: issuer.country,
            name: issuer.name,
        };
        let additional = details.additional.into_iter().map(|card| Self {
            brand: card.brand.as_deref().map(display),
            funding: card.funding.as_deref().map(display),
            issuer: card.issuer.map(issuer),
            ..Self::default()
        });
        Self {
            additional: additional.collect(),
            brand: details.brand.map(display),
            funding: details.funding.map(display),
            segment: details.segment,
            issuer: details.issuer.map(issuer),
        }
    }
}

/// `american-express` as people write it: each word with a capital.
fn display(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(letters).collect()
        })
    };
    let words: Vec<String> = name.split('-').map(capital).collect();
    words.join(" ")
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Tokens(error) => error.into(),
        }
    }
}
