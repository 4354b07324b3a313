//! Stripe: `POST /v1/payment_intents`, a form with bracketed names.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
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
        .with_state(charges)
}

async fn create(
    State(charges): State<Charges>,
    headers: HeaderMap,
    Form(form): Form<BTreeMap<String, String>>,
) -> Response {
    let credentials = format!("Bearer {SECRET_KEY}");
    if headers.get("authorization").map(|value| value.as_bytes()) != Some(credentials.as_bytes()) {
        let error = json!({"type": "invalid_request_error", "message": "Invalid API Key provided"});
        return reject(StatusCode::UNAUTHORIZED, error);
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
