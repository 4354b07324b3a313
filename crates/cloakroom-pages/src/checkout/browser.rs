//! Requests of cardholders' browsers: the page, and the submission of its form.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cloakroom_management::branding;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, ClientAddr, JsonBody, PathId, Problem,
};
use cloakroom_platform::telemetry::TraceId;
use cloakroom_tokens::TokenVault;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::find::{Visitor, find_by_page};
use super::submit::{SubmittedCard, submit};
use super::{Error, form};
use crate::page::PageContext;

/// Public routes of this module.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(show_checkout))
        .routes(routes!(submit_card))
}

/// Show the hosted card form of a session.
#[utoipa::path(
    get, path = "/checkout/{key}", tag = "Checkout",
    params(("key" = String, Path, description = "The secret in the URL of the session.")),
    responses(
        (status = 200, description = "A page with the form, or one that says that the session is complete.",
         content_type = "text/html"),
        (status = 403, description = "The host of a URL of the session is no longer allowed.", body = Problem),
        (status = 404, description = "The session does not exist.", body = Problem),
        (status = 410, description = "A page that says that the session has expired.", content_type = "text/html"),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn show_checkout(
    State(vault): State<TokenVault>,
    PathId(key): PathId,
    context: PageContext,
    visitor: VisitorParts,
) -> Result<Response, ApiError> {
    let page = find_by_page(&vault, &key, visitor_of(visitor)).await?;
    let branding = branding::find_for_page(&vault, page.caller.tenant).await?;
    let context = context.with_language(page.session.facts.locale.as_deref());
    Ok(form::page(&context, &page.session, branding.as_ref(), &key).into_response())
}

/// A card that the page submits.
#[derive(Deserialize, ToSchema)]
struct SubmittedCardBody<'a> {
    /// The card: `number`, `expiration_month`, `expiration_year` and `cvc`.
    #[serde(borrow)]
    #[schema(value_type = Object, required, nullable = false)]
    data: Option<&'a RawValue>,
    /// Required if the session collects it.
    #[schema(max_length = 100)]
    cardholder_name: Option<String>,
}

/// Where the page redirects the browser to.
#[derive(Serialize, ToSchema)]
struct LocationBody {
    location: String,
}

/// Submit the card of a session.
///
/// Sent by the page of the session. Creates a token intent, once, and completes the session.
#[utoipa::path(
    post, path = "/checkout/{key}/card", tag = "Checkout",
    params(("key" = String, Path, description = "The secret in the URL of the session.")),
    request_body = SubmittedCardBody<'_>,
    responses(
        BodyErrors,
        (status = 200, description = "The return URL, with the ids of the session and of the token intent.",
         body = LocationBody),
        (status = 403, description = "The request comes from another site, or the host of a URL of the session is no \
         longer allowed.", body = Problem),
        (status = 404, description = "The session does not exist.", body = Problem),
        (status = 409, description = "The session is complete or has expired.", body = Problem),
        (status = 429, description = "Too many invalid card numbers were sent.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn submit_card(
    State(vault): State<TokenVault>,
    PathId(key): PathId,
    headers: HeaderMap,
    visitor: VisitorParts,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    require_same_origin(&headers)?;
    let page = find_by_page(&vault, &key, visitor_of(visitor)).await?;
    let body = body?;
    let body: SubmittedCardBody<'_> = body.read()?;
    let data = body
        .data
        .ok_or_else(|| ApiError::invalid("data", "is required"))?;
    let card = SubmittedCard {
        data,
        cardholder_name: body.cardholder_name,
    };
    let location = submit(&vault, page, card).await?;
    Answer::ok(&LocationBody { location })
}

/// Browsers say where a request comes from. A site that learned the URL of a page cannot submit it for a visitor.
fn require_same_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get("sec-fetch-site") {
        Some(site) if site != "same-origin" => Err(ApiError::forbidden(
            "Only the page of the session may submit a card.",
        )),
        _ => Ok(()),
    }
}

/// Extensions of every request.
type VisitorParts = (Option<Extension<TraceId>>, Option<Extension<ClientAddr>>);

fn visitor_of((trace_id, client): VisitorParts) -> Visitor {
    Visitor {
        trace_id: trace_id.map_or_else(|| "".into(), |Extension(id)| id.0),
        address: client.map(|Extension(client)| client.0),
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::WrongKind(kind) => {
                Self::forbidden(format!("Only {kind} applications can do this."))
            }
            Error::Invalid(errors) => Self::all_invalid(errors),
            Error::NotFound => Self::not_found("Checkout session not found."),
            Error::NotOpen => Self::conflict("The checkout session is complete or has expired."),
            Error::HostNotAllowed => Self::forbidden(
                "The host of a URL of the session is not in the tenant setting threeds_callback_hosts.",
            ),
            Error::Intent(error) => error.into(),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
