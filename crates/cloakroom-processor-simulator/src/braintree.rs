//! Braintree: `POST /graphql`, the mutations `tokenizeCreditCard` and `chargePaymentMethod`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::charge::{Charge, Charges, Outcome, text};

pub const HOST: &str = "payments.sandbox.braintree.example";
pub const PUBLIC_KEY: &str = "simulator_public_key";
pub const PRIVATE_KEY: &str = "simulator_private_key";

#[derive(Clone)]
struct Processor {
    charges: Charges,
    /// Cards by the id of their single-use payment method; a charge takes the card.
    payment_methods: Arc<Mutex<PaymentMethods>>,
}

type PaymentMethods = BTreeMap<String, Option<Charge>>;

pub(crate) fn router(charges: Charges) -> Router {
    let state = Processor {
        charges,
        payment_methods: Arc::default(),
    };
    Router::new()
        .route("/graphql", post(query))
        .with_state(state)
}

async fn query(
    State(processor): State<Processor>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let credentials = STANDARD.encode(format!("{PUBLIC_KEY}:{PRIVATE_KEY}"));
    let credentials = format!("Basic {credentials}");
    if headers.get("authorization").map(|value| value.as_bytes()) != Some(credentials.as_bytes()) {
        return reject("AUTHENTICATION", "Authentication credentials are invalid.");
    }
    if !headers.contains_key("braintree-version") {
        return reject("VALIDATION", "The header Braintree-Version is missing.");
    }
    let query = text(&body, "/query").unwrap_or_default();
    let data = match query {
        query if query.contains("tokenizeCreditCard") => processor.tokenize(&body),
        query if query.contains("chargePaymentMethod") => processor.charge(&body),
        _ => None,
    };
    match data {
        Some(data) => Json(json!({"data": data})).into_response(),
        None => reject("VALIDATION", "A variable is missing or has a wrong type."),
    }
}

impl Processor {
    fn tokenize(&self, body: &Value) -> Option<Value> {
        let card = body.pointer("/variables/input/creditCard")?;
        let charge = Charge {
            processor: "braintree",
            number: text(card, "/number")?.to_owned(),
            expiration_month: text(card, "/expirationMonth")?.parse().ok()?,
            expiration_year: text(card, "/expirationYear")?.parse().ok()?,
            security_code: text(card, "/cvv").map(str::to_owned),
            amount: 0,
            currency: String::new(),
        };
        if charge.outcome() == Outcome::InvalidNumber {
            return None;
        }
        let mut methods = self.lock();
        let id = format!("tokencc_sim_{:08}", methods.len() + 1);
        let details = json!({"bin": charge.bin(), "last4": charge.last4()});
        methods.insert(id.clone(), Some(charge));
        Some(json!({"tokenizeCreditCard": {
            "paymentMethod": {"id": id, "usage": "SINGLE_USE", "details": details},
        }}))
    }

    fn charge(&self, body: &Value) -> Option<Value> {
        let input = body.pointer("/variables/input")?;
        // Braintree takes an amount in major units, as text.
        let (major, minor) = text(input, "/transaction/amount")?.split_once('.')?;
        let major = major.parse::<u64>().ok()?.checked_mul(100)?;
        let amount = major.checked_add(minor.parse().ok()?)?;
        let id = text(input, "/paymentMethodId")?;
        let card = self.lock().get_mut(id)?.take()?;
        let charge = Charge {
            amount,
            currency: "usd".to_owned(),
            ..card
        };
        let number = self.charges.record(&charge);
        let status = match charge.outcome() {
            Outcome::Approved => "SUBMITTED_FOR_SETTLEMENT",
            Outcome::Declined | Outcome::InvalidNumber => "PROCESSOR_DECLINED",
        };
        Some(json!({"chargePaymentMethod": {
            "transaction": {"id": format!("sim_{number:08}"), "status": status},
        }}))
    }

    fn lock(&self) -> MutexGuard<'_, PaymentMethods> {
        self.payment_methods
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// GraphQL reports errors with status 200.
fn reject(class: &str, message: &str) -> Response {
    let error = json!({"message": message, "extensions": {"errorClass": class}});
    (
        StatusCode::OK,
        Json(json!({"data": null, "errors": [error]})),
    )
        .into_response()
}
