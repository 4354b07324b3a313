//! Checkout.com: `POST /payments`, JSON with numbers for month and year.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::charge::{Charge, Charges, Outcome, text};

pub const HOST: &str = "api.sandbox.checkout.example";
pub const SECRET_KEY: &str = "sk_sbox_simulator";

pub(crate) fn router(charges: Charges) -> Router {
    Router::new()
        .route("/payments", post(pay))
        .with_state(charges)
}

async fn pay(
    State(charges): State<Charges>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let credentials = format!("Bearer {SECRET_KEY}");
    if headers.get("authorization").map(|value| value.as_bytes()) != Some(credentials.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let charge = parse(&body);
    let invalid = match charge.as_ref().map(Charge::outcome) {
        None => Some("request_body_malformed"),
        Some(Outcome::InvalidNumber) => Some("card_number_invalid"),
        Some(Outcome::Approved | Outcome::Declined) => None,
    };
    let (Some(charge), None) = (charge, invalid) else {
        let body = json!({"error_type": "request_invalid", "error_codes": [invalid]});
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response();
    };
    let number = charges.record(&charge);
    let is_approved = charge.outcome() == Outcome::Approved;
    let (status, code, summary) = match is_approved {
        true => ("Authorized", "10000", "Approved"),
        false => ("Declined", "20005", "Declined - Do Not Honour"),
    };
    let body = json!({
        "id": format!("pay_{number:026}"),
        "amount": charge.amount,
        "currency": body["currency"],
        "approved": is_approved,
        "status": status,
        "response_code": code,
        "response_summary": summary,
        "reference": body["reference"],
        "source": {
            "type": "card",
            "expiry_month": charge.expiration_month,
            "expiry_year": charge.expiration_year,
            "bin": charge.bin(),
            "last4": charge.last4(),
        },
    });
    (StatusCode::CREATED, Json(body)).into_response()
}

fn parse(body: &Value) -> Option<Charge> {
    if text(body, "/source/type")? != "card" {
        return None;
    }
    if body
        .get("3ds")
        .is_some_and(|proof| !is_authentication(proof))
    {
        return None;
    }
    let number = |pointer: &str| body.pointer(pointer)?.as_u64();
    Some(Charge {
        processor: "checkout",
        number: text(body, "/source/number")?.to_owned(),
        expiration_month: number("/source/expiry_month")?.try_into().ok()?,
        expiration_year: number("/source/expiry_year")?.try_into().ok()?,
        security_code: text(body, "/source/cvv").map(str::to_owned),
        amount: number("/amount")?,
        currency: text(body, "/currency")?.to_lowercase(),
    })
}

/// The result of an authentication by another 3DS Server.
fn is_authentication(proof: &Value) -> bool {
    let texts = ["/eci", "/cryptogram", "/xid", "/version"];
    proof["enabled"] == true && texts.iter().all(|pointer| text(proof, pointer).is_some())
}
