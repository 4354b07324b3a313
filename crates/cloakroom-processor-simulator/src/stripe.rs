//! Stripe: `POST /v1/payment_intents`, a form with bracketed names, and `GET /v1/issuing/cards/{id}`, which returns a card
//! number.

use std::collections::BTreeMap;

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::charge::{Charge, Charges, Outcome};

pub const HOST: &str = "api.stripe.example";
pub const SECRET_KEY: &str = "sk_test_simulator";

/// Names that the request may have; the processor rejects others.
const PARAMETERS: &[&str] = &[
    "amount",
    "currency",
    "confirm",
    "description",
    "error_on_requires_action",
    "payment_method_data[type]",
    "payment_method_data[card][number]",
    "payment_method_data[card][exp_month]",
    "payment_method_data[card][exp_year]",
    "payment_method_data[card][cvc]",
    "payment_method_types[]",
];

pub(crate) fn router(charges: Charges) -> Router {
    Router::new()
        .route("/v1/payment_intents", post(create))
        .route("/v1/issuing/cards/{id}", get(issued_card))
        .with_state(charges)
}

async fn create(
    State(charges): State<Charges>,
    headers: HeaderMap,
    Form(form): Form<BTreeMap<String, String>>,
) -> Response {
    if !is_authorized(&headers) {
        return unauthorized();
    }
    let unknown = form
        .keys()
        .find(|name| !PARAMETERS.contains(&name.as_str()));
    if let Some(name) = unknown {
        let error = json!({
            "type": "invalid_request_error",
            "code": "parameter_unknown",
            "param": name,
        });
        return reject(StatusCode::BAD_REQUEST, error);
    }
    let Some(charge) = parse(&form) else {
        let error = json!({"type": "invalid_request_error", "code": "parameter_missing"});
        return reject(StatusCode::BAD_REQUEST, error);
    };
    let number = charges.record(&charge);
    match charge.outcome() {
        Outcome::Approved => Json(json!({
            "id": format!("pi_{number:024}"),
            "object": "payment_intent",
            "amount": charge.amount,
            "amount_received": charge.amount,
            "currency": charge.currency,
            "payment_method": format!("pm_{number:024}"),
            "status": "succeeded",
        }))
        .into_response(),
        Outcome::Declined => decline("card_declined", "Your card was declined."),
        Outcome::InvalidNumber => decline("incorrect_number", "Your card number is incorrect."),
    }
}

/// The card `ic_N` is that of the N-th charge, as if the merchant had issued it. Its number is returned only if the query
/// expands it.
async fn issued_card(
    State(charges): State<Charges>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    if !is_authorized(&headers) {
        return unauthorized();
    }
    let position = id.strip_prefix("ic_").and_then(|n| n.parse().ok());
    let position = position.and_then(|n: usize| n.checked_sub(1));
    let Some(charge) = position.and_then(|n| charges.all().get(n).cloned()) else {
        let error = json!({"type": "invalid_request_error", "code": "resource_missing"});
        return reject(StatusCode::NOT_FOUND, error);
    };
    let mut card = json!({
        "id": id,
        "object": "issuing.card",
        "exp_month": charge.expiration_month,
        "exp_year": charge.expiration_year,
        "last4": charge.last4(),
    });
    if query.as_deref() == Some("expand[]=number") {
        card["number"] = charge.number.into();
    }
    Json(card).into_response()
}

fn is_authorized(headers: &HeaderMap) -> bool {
    let credentials = format!("Bearer {SECRET_KEY}");
    headers.get("authorization").map(|value| value.as_bytes()) == Some(credentials.as_bytes())
}

fn unauthorized() -> Response {
    let error = json!({"type": "invalid_request_error", "message": "Invalid API Key provided"});
    reject(StatusCode::UNAUTHORIZED, error)
}

fn parse(form: &BTreeMap<String, String>) -> Option<Charge> {
    let card = |name: &str| form.get(&format!("payment_method_data[card][{name}]"));
    if form.get("payment_method_data[type]")? != "card" || form.get("confirm")? != "true" {
        return None;
    }
    Some(Charge {
        processor: "stripe",
        number: card("number")?.clone(),
        expiration_month: card("exp_month")?.parse().ok()?,
        expiration_year: card("exp_year")?.parse().ok()?,
        security_code: card("cvc").cloned(),
        amount: form.get("amount")?.parse().ok()?,
        currency: form.get("currency")?.clone(),
    })
}

fn decline(code: &str, message: &str) -> Response {
    let error = json!({"type": "card_error", "code": code, "message": message});
    reject(StatusCode::PAYMENT_REQUIRED, error)
}

fn reject(status: StatusCode, error: serde_json::Value) -> Response {
    (status, Json(json!({"error": error}))).into_response()
}
