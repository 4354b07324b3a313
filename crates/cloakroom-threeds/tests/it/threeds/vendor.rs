//! A 3DS vendor in place of directory servers: it assigns session ids and is polled for results.

use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, CheckoutOptions, card_number, id_of};
use super::requests::payment;

async fn start() -> Checkout {
    Checkout::start_with(CheckoutOptions {
        use_vendor: true,
        ..CheckoutOptions::default()
    })
    .await
}

#[tokio::test]
async fn vendors_assign_ids_and_return_results() {
    let checkout = start().await;

    let passed = checkout
        .create_and_authenticate("4200000000000002", payment())
        .await;
    assert_eq!(passed["authentication_status"], "successful");
    assert_eq!(passed["eci"], "05");

    let challenged = checkout
        .create_and_authenticate("4200000000000004", payment())
        .await;
    let id = id_of(&json!({"id": challenged["session_id"]})).to_owned();
    assert_eq!(challenged["authentication_status"], "challenge");
    let early = checkout.result(&id).await;
    assert_eq!(
        early.status,
        StatusCode::FAILED_DEPENDENCY,
        "{}",
        early.body
    );
    let page = checkout.open_challenge(&challenged).await;
    checkout.complete_challenge(page).await;
    let result = checkout.result(&id).await;
    assert_eq!(result.status, StatusCode::OK, "{}", result.body);
    assert_eq!(result.body["authentication_status"], "successful");
    assert_eq!(result.body["directory_status_code"], "C");
    // Stored at once, because the vendor keeps results only briefly.
    assert_eq!(checkout.result(&id).await.body, result.body);
}

#[tokio::test]
async fn vendor_errors_are_reported_like_network_errors() {
    let checkout = start().await;
    let unknown = checkout.request_session("4100000000000003").await;
    assert_eq!(unknown.status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(unknown.body["error"]["service_status"], "404");
    let broken = checkout.request_session("4200000000000013").await;
    assert_eq!(broken.status, StatusCode::FAILED_DEPENDENCY);
    assert_ne!(broken.body["error"]["service_status"], "404");

    let session = checkout.create_session(&card_number("0000")).await;
    let fault = json!({"kind": "auth", "what": "refuse", "times": 1});
    checkout.control("/control/trouble", fault).await;
    let response = checkout.authenticate(id_of(&session), payment()).await;
    assert_eq!(response.status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(response.body["error"]["service_status"], "502");
    let again = checkout.authenticate(id_of(&session), payment()).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
}
