//! A vendor in place of directory servers: he gives sessions their ids and is asked for results.

use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, Plan, digits, id_of};
use super::requests::payment;

async fn start() -> Checkout {
    Checkout::start_with(Plan {
        by_vendor: true,
        ..Plan::default()
    })
    .await
}

#[tokio::test]
async fn a_vendor_gives_ids_answers_and_results() {
    let checkout = start().await;

    let passed = checkout.authenticated("4200000000000002", payment()).await;
    assert_eq!(passed["authentication_status"], "successful");
    assert_eq!(passed["eci"], "05");

    let challenged = checkout.authenticated("4200000000000004", payment()).await;
    let id = id_of(&json!({"id": challenged["session_id"]})).to_owned();
    assert_eq!(challenged["authentication_status"], "challenge");
    let early = checkout.result(&id).await;
    assert_eq!(
        early.status,
        StatusCode::FAILED_DEPENDENCY,
        "{}",
        early.body
    );
    let page = checkout.challenge(&challenged).await;
    checkout.pass(page).await;
    let result = checkout.result(&id).await;
    assert_eq!(result.status, StatusCode::OK, "{}", result.body);
    assert_eq!(result.body["authentication_status"], "successful");
    assert_eq!(result.body["directory_status_code"], "C");
    // Kept at once: the vendor forgets it soon.
    assert_eq!(checkout.result(&id).await.body, result.body);
}

#[tokio::test]
async fn what_a_vendor_refuses_is_told_as_of_a_network() {
    let checkout = start().await;
    let unknown = checkout.session("4100000000000003").await;
    assert_eq!(unknown.status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(unknown.body["error"]["service_status"], "404");
    let broken = checkout.session("4200000000000013").await;
    assert_eq!(broken.status, StatusCode::FAILED_DEPENDENCY);
    assert_ne!(broken.body["error"]["service_status"], "404");

    let session = checkout.created(&digits("0000")).await;
    let trouble = json!({"kind": "auth", "what": "refuse", "times": 1});
    checkout.control("/control/trouble", trouble).await;
    let answer = checkout.authenticate(id_of(&session), payment()).await;
    assert_eq!(answer.status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(answer.body["error"]["service_status"], "502");
    let again = checkout.authenticate(id_of(&session), payment()).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
}
