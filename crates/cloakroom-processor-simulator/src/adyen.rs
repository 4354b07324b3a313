//! Adyen: `POST /v71/payments`, JSON with text for the card's digits.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::charge::{Charge, Charges, Outcome, text};

pub const HOST: &str = "checkout-test.adyen.example";
pub const API_KEY: &str = "AQE-simulator";
pub const MERCHANT_ACCOUNT: &str = "SimulatorECOM";

pub(crate) fn router(charges: Charges) -> Router {
    Router::new()
        .route("/v71/payments", post(pay))
        .with_state(charges)
}

async fn pay(
    State(charges): State<Charges>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    if headers.get("x-api-key").map(|value| value.as_bytes()) != Some(API_KEY.as_bytes()) {
        return reject(
            StatusCode::UNAUTHORIZED,
            "000",
            "HTTP Status Response - Unauthorized",
        );
    }
    if text(&body, "/merchantAccount") != Some(MERCHANT_ACCOUNT) {
        return reject(StatusCode::FORBIDDEN, "901", "Invalid Merchant Account");
    }
    let Some(charge) = parse(&body) else {
        return reject(
            StatusCode::UNPROCESSABLE_ENTITY,
            "702",
            "The request has a missing field or a field of a wrong type",
        );
    };
    let number = charges.record(&charge);
    let (result, reason) = match charge.outcome() {
        Outcome::Approved => ("Authorised", None),
        Outcome::Declined => ("Refused", Some("Refused")),
        Outcome::InvalidNumber => {
            return reject(
                StatusCode::UNPROCESSABLE_ENTITY,
                "101",
                "Invalid card number",
            );
        }
    };
    let mut response = json!({
        "pspReference": format!("SIM{number:013}"),
        "resultCode": result,
        "merchantReference": body["reference"],
        "amount": body["amount"],
        "additionalData": {"cardBin": charge.bin(), "cardSummary": charge.last4()},
    });
    if let Some(reason) = reason {
        response["refusalReason"] = json!(reason);
        response["refusalReasonCode"] = json!("2");
    }
    Json(response).into_response()
}

fn parse(body: &Value) -> Option<Charge> {
    if text(body, "/paymentMethod/type")? != "scheme" {
        return None;
    }
    text(body, "/reference")?;
    text(body, "/returnUrl")?;
    Some(Charge {
        processor: "adyen",
        number: text(body, "/paymentMethod/number")?.to_owned(),
        expiration_month: text(body, "/paymentMethod/expiryMonth")?.parse().ok()?,
        expiration_year: text(body, "/paymentMethod/expiryYear")?.parse().ok()?,
        security_code: text(body, "/paymentMethod/cvc").map(str::to_owned),
        amount: body.pointer("/amount/value")?.as_u64()?,
        currency: text(body, "/amount/currency")?.to_lowercase(),
    })
}

fn reject(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({
        "status": status.as_u16(),
        "errorCode": code,
        "message": message,
        "errorType": "validation",
    });
    (status, Json(body)).into_response()
}
