//! Every field of an authentication request: when it is required, where it is sent, and which values are invalid.

use cloakroom::threeds::requests::{Case, FIELDS, SessionKind};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::checkout::{Checkout, card_number, id_of};
use super::field_values::{at, expected, full_request, set_choices, set_field};

const CUSTOMER: &[&str] = &[
    "payment-transaction",
    "recurring-transaction",
    "installment-transaction",
    "add-card",
    "maintain-card",
    "cardholder-emv-verification",
    "account-verification",
];
const MERCHANT: &[&str] = &[
    "recurring-transaction",
    "installment-transaction",
    "add-card",
    "top-up",
    "other-payment",
    "billing-agreement",
];

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

/// Covers 24.5.
#[tokio::test]
async fn missing_fields_are_reported_by_name() {
    let checkout = Checkout::start().await;
    let number = card_number("0000");
    let customer = checkout.create_session(&number).await;
    let merchant = checkout.create_merchant_session(&number).await;
    let mut attempts = 0;
    for (kind, id, purposes) in [
        (SessionKind::Customer, id_of(&customer), CUSTOMER),
        (SessionKind::Merchant, merchant.as_str(), MERCHANT),
    ] {
        for (category, purpose) in ["payment", "non-payment"]
            .into_iter()
            .flat_map(|category| purposes.iter().map(move |purpose| (category, *purpose)))
        {
            let whole = full_request(category, purpose);
            let case = Case::of(kind, object(&whole));
            for field in FIELDS.iter().filter(|field| field.needed.holds(&case)) {
                let mut request = whole.clone();
                set_field(&mut request, field.path, None);
                let response = checkout.authenticate(id, request).await;
                assert_eq!(response.status, StatusCode::BAD_REQUEST, "{}", field.path);
                assert_eq!(
                    response.refused(),
                    [field.path],
                    "{kind:?} {category} {purpose}"
                );
                attempts += 1;
            }
        }
    }
    println!("{attempts} requests with one missing field");
    assert!(attempts >= 80, "{attempts}");
    assert_eq!(checkout.received_count("AReq").await, 0);
    let response = checkout
        .authenticate(id_of(&customer), full_request("payment", CUSTOMER[0]))
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
}

/// Covers 24.7.
#[tokio::test]
async fn fields_are_sent_with_their_protocol_codes() {
    let checkout = Checkout::start().await;
    let number = card_number("0000");
    let mut sent_fields = std::collections::BTreeSet::new();
    for turn in 0..10 {
        let mut request = full_request("payment", "payment-transaction");
        set_choices(&mut request, turn);
        let session = checkout.create_session(&number).await;
        let response = checkout
            .authenticate(id_of(&session), request.clone())
            .await;
        assert_eq!(response.status, StatusCode::OK, "{turn}: {}", response.body);
        let areq = checkout.transaction(id_of(&session)).await["areq"].clone();
        for field in FIELDS.iter().filter(|field| !field.to.is_empty()) {
            let given = at(&request, field.path);
            let expected = expected(field.path, given, turn);
            assert_eq!(
                *at(&areq, field.to),
                expected,
                "{turn}: {} -> {}",
                field.path,
                field.to
            );
            if !expected.is_null() {
                sent_fields.insert(field.path);
            }
        }
    }
    let expected_count = FIELDS.iter().filter(|field| !field.to.is_empty()).count();
    println!("{expected_count} fields sent in the AReq");
    assert_eq!(sent_fields.len(), expected_count);
}

/// Covers 24.5.
#[tokio::test]
async fn invalid_values_are_reported_by_field() {
    let checkout = Checkout::start().await;
    let session = checkout.create_session(&card_number("0000")).await;
    let whole = full_request("payment", "payment-transaction");
    let mut attempts = 0;
    for field in FIELDS {
        let takes = format!("{:?}", field.takes);
        let invalid_values = match takes.split(['(', ' ']).next().unwrap_or_default() {
            "Flag" => vec![json!("yes"), json!(1)],
            "Minutes" => vec![json!(0), json!(10_081), json!("5"), json!(1.5)],
            "Object" | "Opaque" => vec![json!("text"), json!(["list"])],
            "Extensions" => vec![json!({}), json!("text")],
            "Named" | "OneOf" | "Currency" => vec![json!(7), json!(""), json!("nonsense")],
            _ => vec![json!(7), json!(""), json!({"an": "object"})],
        };
        for value in invalid_values {
            let mut request = whole.clone();
            set_field(&mut request, field.path, Some(value.clone()));
            let response = checkout.authenticate(id_of(&session), request).await;
            let case = format!("{} = {value}: {}", field.path, response.body);
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{case}");
            assert_eq!(response.refused(), [field.path], "{case}");
            attempts += 1;
        }
    }
    println!("{attempts} wrong values");
    assert_eq!(checkout.received_count("AReq").await, 0);
}

/// Field, value in the request, value in the message.
const ISO: &[(&str, &str, &str)] = &[
    (
        "purchase_info.date",
        "2024-01-09T14:10:10Z",
        "20240109141010",
    ),
    (
        "purchase_info.date",
        "2024-01-09T23:10:10-02:00",
        "20240110011010",
    ),
    (
        "purchase_info.date",
        "2024-01-09T14:10:10.123",
        "20240109141010",
    ),
    ("purchase_info.date", "2024-01-09", "20240109000000"),
    (
        "purchase_info.recurring_expiration",
        "2030-01-01",
        "20300101",
    ),
    (
        "merchant_info.risk_info.pre_order_date",
        "2030-01-02",
        "20300102",
    ),
    ("merchant_info.risk_info.gift_card_count", "2", "02"),
    ("merchant_info.risk_info.gift_card_count", "12", "12"),
    (
        "cardholder_info.account_info.account_created_date",
        "2020-01-01",
        "20200101",
    ),
    (
        "cardholder_info.account_info.account_created_date",
        "2020-01-01T10:00:00Z",
        "20200101",
    ),
    (
        "cardholder_info.account_info.account_change_date",
        "2020-01-02",
        "20200102",
    ),
    (
        "cardholder_info.account_info.account_pwd_change_date",
        "2020-01-03",
        "20200103",
    ),
    (
        "cardholder_info.account_info.payment_account_age",
        "2020-01-04",
        "20200104",
    ),
    (
        "cardholder_info.account_info.shipping_address_usage_date",
        "2020-01-05",
        "20200105",
    ),
    (
        "cardholder_info.authentication_info.timestamp",
        "2024-01-09T14:10:59Z",
        "202401091410",
    ),
    (
        "cardholder_info.prior_authentication_info.timestamp",
        "2023-01-09T14:10Z",
        "202301091410",
    ),
];

/// Covers 24.21.
#[tokio::test]
async fn iso_dates_and_short_counts_are_converted() {
    let checkout = Checkout::start().await;
    let number = card_number("0000");
    for (path, given, expected) in ISO.iter().copied() {
        let mut request = full_request("payment", "recurring-transaction");
        set_field(&mut request, path, Some(given.into()));
        let session = checkout.create_session(&number).await;
        let response = checkout.authenticate(id_of(&session), request).await;
        assert_eq!(response.status, StatusCode::OK, "{path}: {}", response.body);
        let areq = checkout.transaction(id_of(&session)).await["areq"].clone();
        let field = FIELDS.iter().find(|field| field.path == path).unwrap();
        assert_eq!(*at(&areq, field.to), expected, "{path}: {given}");
    }
    let session = checkout.create_session(&number).await;
    for (path, given) in [
        ("purchase_info.date", "2024-02-30"),
        ("purchase_info.date", "yesterday"),
        ("purchase_info.recurring_expiration", "2030-13-01"),
        ("merchant_info.risk_info.gift_card_count", "123"),
        ("merchant_info.risk_info.gift_card_count", "x"),
    ] {
        let mut request = full_request("payment", "recurring-transaction");
        set_field(&mut request, path, Some(given.into()));
        let response = checkout.authenticate(id_of(&session), request).await;
        assert_eq!(response.refused(), [path], "{given}: {}", response.body);
    }
}
