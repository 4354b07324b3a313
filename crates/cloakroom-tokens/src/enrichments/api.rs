//! HTTP routes of enrichments.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::{ApplicationKind, Permission};
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, JsonBody, KeyErrors, Problem, Query, ReadErrors,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Error;
use super::bank_account::{NewVerification, verify_bank_account};
use crate::bins::CardDetails;
use crate::tokens::TokenVault;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(verify_account))
        .routes(routes!(find_card_details))
}

/// Verify a bank account.
///
/// Requires `proxy:invoke` or `token:use` in the token's container. Without a verification provider, the published test
/// accounts have their published results and all others are `inconclusive`.
#[utoipa::path(
    post, path = "/enrichments/bank-account-verify", tag = "Enrichments",
    request_body = AccountBody,
    responses(
        ReadErrors, BodyErrors,
        (status = 200, description = "The status of the account.", body = VerificationBody),
        (status = 403, description = "The key lacks the permission in this container.", body = Problem),
    ),
)]
async fn verify_account(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_anywhere(Permission::TokenUse)?;
    let body = body?;
    let body: AccountBody = body.read()?;
    let new = NewVerification {
        token_id: body.token_id,
        country_code: body.country_code,
        routing_number: body.routing_number,
    };
    let status = verify_bank_account(&vault, &caller, &new).await?;
    Answer::ok(&VerificationBody {
        status: status.name(),
    })
}

/// Read BIN details.
///
/// Requires a key of a private or public application.
#[utoipa::path(
    get, path = "/enrichments/card-details", tag = "Enrichments",
    params(("bin" = String, Query, description = "The first 6 to 8 digits.", min_length = 6,
            max_length = 8, pattern = "^[0-9]{6,8}$")),
    responses(
        KeyErrors,
        (status = 200, description = "The details; empty for an unknown BIN.", body = BinBody),
        (status = 400, description = "The BIN is not 6 to 8 digits.", body = Problem),
        (status = 403, description = "The key belongs to a management application.", body = Problem),
    ),
)]
async fn find_card_details(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    if caller.application_kind == ApplicationKind::Management {
        let detail = "Management applications cannot read card details.";
        return Err(ApiError::forbidden(detail));
    }
    let mut given = Query::decode(query.as_deref(), &["bin"]);
    let bin = given.once("bin").unwrap_or_default();
    if !(6..=8).contains(&bin.len()) || !bin.bytes().all(|byte| byte.is_ascii_digit()) {
        given.reject("bin", "must be 6 to 8 digits");
    }
    let (bin, ()) = given.finish(bin, Ok(())).map_err(ApiError::all_invalid)?;
    // Looks up the first 16-digit card number of the BIN.
    let details = CardDetails::of(&vault.bins, caller.tenant_kind, &format!("{bin:0<16}"));
    Answer::ok(&BinBody::new(details))
}

/// An account to verify.
#[derive(Deserialize, ToSchema)]
struct AccountBody {
    /// A token of the type `bank` or `us_bank_account_number`.
    #[schema(min_length = 1, required)]
    token_id: Option<String>,
    /// `US`, which is also the default.
    #[schema(pattern = "^US$")]
    country_code: Option<String>,
    /// Nine digits; required for account numbers, and not allowed otherwise.
    #[schema(pattern = "^[0-9]{9}$")]
    routing_number: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct VerificationBody {
    /// `enabled`, `disabled` or `inconclusive`.
    status: &'static str,
}

/// Details of a BIN, with display names. Unknown attributes are omitted.
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

/// Converts `american-express` to a display name: each word is capitalized.
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
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::Tokens(error) => error.into(),
        }
    }
}
