//! HTTP interface of checkout sessions for merchants' servers.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, JsonBody, PathId, Problem, ReadErrors, WriteErrors,
    format_utc,
};
use cloakroom_tokens::TokenVault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::create::require_private;
use super::{CreatedSession, NewSession, Session};
use crate::checkout;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(create_checkout_session))
        .routes(routes!(find_checkout_session))
}

/// Create a checkout session.
///
/// Requires `token-intent:create` and a private key. Redirect the cardholder to `url`, which is returned in this response
/// only. The page collects a card, creates a token intent, and redirects to `return_url` with `checkout_session_id` and
/// `token_intent_id` in the query. Amount, currency and reference are only shown.
#[utoipa::path(
    post, path = "/checkout/sessions", tag = "Checkout",
    request_body = NewCheckoutSessionBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The session was created.", body = CheckoutSessionBody<'_>,
         headers(("Location" = String, description = "The URL of the session."))),
    ),
)]
async fn create_checkout_session(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    // Checked before the body, so that the response discloses nothing to a key without the permission.
    require_private(&caller)?;
    caller.require_anywhere(Permission::TokenIntentCreate)?;
    let body = body?;
    let new: NewCheckoutSessionBody = body.read()?;
    let template = caller.response_template(|created: &CreatedSession| {
        let id = created.session.columns.id;
        let url = format!("{base_url}/checkout/{}", created.page_key.expose());
        let location = format!("{base_url}/checkout/sessions/{id}");
        Answer::created(
            location,
            &CheckoutSessionBody::new(&created.session, Some(url)),
        )
    });
    let created = checkout::create(&vault, &caller, new.into(), &template).await?;
    template.render(&created)
}

/// Read a checkout session.
///
/// Requires `token-intent:read` and a private key. Sessions can be read for 24 hours after they expire.
#[utoipa::path(
    get, path = "/checkout/sessions/{id}", tag = "Checkout",
    params(("id" = String, Path, description = "The session's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The session.", body = CheckoutSessionBody<'_>),
        (status = 404, description = "The session does not exist.", body = Problem),
    ),
)]
async fn find_checkout_session(
    State(vault): State<TokenVault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let session = checkout::find(&vault, &caller, &id).await?;
    Answer::ok(&CheckoutSessionBody::new(&session, None))
}

/// A checkout session to create.
#[derive(Deserialize, ToSchema)]
struct NewCheckoutSessionBody {
    /// Where the cardholder returns to: an https URL whose host is in the tenant setting `threeds_callback_hosts`.
    #[schema(max_length = 2048, required, nullable = false)]
    return_url: Option<String>,
    /// Where a cardholder who cancels returns to. The same rules apply.
    #[schema(max_length = 2048, required, nullable = false)]
    cancel_url: Option<String>,
    /// The amount to show, in minor units of the currency. Requires `currency`.
    #[schema(minimum = 0, maximum = 999999999999i64)]
    amount: Option<i64>,
    /// ISO 4217. Requires `amount`.
    #[schema(min_length = 3, max_length = 3)]
    currency: Option<String>,
    /// A text to show, such as an order number.
    #[schema(min_length = 1, max_length = 50)]
    reference: Option<String>,
    /// The language of the page: `en`, `de`, `fr`, `es` or `pt`. That of the browser if missing.
    locale: Option<String>,
    /// Whether the form also asks for the name on the card.
    collect_cardholder_name: Option<bool>,
    /// When the page expires: at most 24 hours from now, 30 minutes from now if missing.
    expires_at: Option<String>,
}

impl From<NewCheckoutSessionBody> for NewSession {
    fn from(body: NewCheckoutSessionBody) -> Self {
        Self {
            return_url: body.return_url,
            cancel_url: body.cancel_url,
            amount: body.amount,
            currency: body.currency,
            reference: body.reference,
            locale: body.locale,
            collects_name: body.collect_cardholder_name.unwrap_or_default(),
            expires_at: body.expires_at,
        }
    }
}

/// A checkout session. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
struct CheckoutSessionBody<'a> {
    id: Uuid,
    /// `open`, `complete` or `expired`.
    status: &'static str,
    /// The page for the cardholder, only in the response to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    url: Option<String>,
    return_url: &'a str,
    cancel_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    amount: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    currency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    locale: Option<&'a str>,
    collect_cardholder_name: bool,
    /// The token intent, once the session is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token_intent_id: Option<Uuid>,
    /// The name on the card, if the session collects it, once it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cardholder_name: Option<&'a str>,
    created_by: Uuid,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    completed_at: Option<String>,
}

impl<'a> CheckoutSessionBody<'a> {
    fn new(session: &'a Session, url: Option<String>) -> Self {
        let Session { columns, facts } = session;
        let completion = facts.completion.as_ref();
        Self {
            id: columns.id,
            status: session.status().name(),
            url,
            return_url: &facts.return_url,
            cancel_url: &facts.cancel_url,
            amount: facts.price.as_ref().map(|price| price.amount),
            currency: facts.price.as_ref().map(|price| price.currency.as_str()),
            reference: facts.reference.as_deref(),
            locale: facts.locale.as_deref(),
            collect_cardholder_name: facts.collects_name,
            token_intent_id: completion.map(|completion| completion.token_intent_id),
            cardholder_name: completion
                .and_then(|completion| completion.cardholder_name.as_deref()),
            created_by: columns.created_by,
            created_at: format_utc(columns.created_at),
            expires_at: format_utc(columns.expires_at),
            completed_at: completion.map(|completion| format_utc(completion.completed_at)),
        }
    }
}
