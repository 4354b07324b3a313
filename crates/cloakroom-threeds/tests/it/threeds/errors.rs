//! Network errors: what the merchant receives, and whether a retry is allowed.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::checkout::{Checkout, CheckoutOptions, card_number, id_of};
use super::requests::{payment, payment_of};

/// Sends a request that fails with `status`, and retries it.
async fn expect_error(checkout: &Checkout, fault: &str, request: Value, status: &str) {
    let session = checkout.create_session(&card_number("0000")).await;
    let id = id_of(&session);
    let response = checkout.authenticate(id, request).await;
    println!(
        "| {fault} | {} | {} | {} |",
        response.status.as_u16(),
        response.body["error"]["service_status"],
        response.body["error"]["error_source"]
    );
    assert_eq!(
        response.status,
        StatusCode::FAILED_DEPENDENCY,
        "{fault}: {}",
        response.body
    );
    assert_eq!(response.body["title"], "3DS Service Error");
    assert_eq!(response.body["status"], 424);
    let error = &response.body["error"];
    assert_eq!(error["service_status"], status, "{fault}: {error}");
    assert_eq!(error["error_source"], "Directory Server", "{fault}");
    assert_eq!(error["session_id"], id);
    assert!(checkout.read(id).await.body["authentication"].is_null());

    let again = checkout.authenticate(id, payment()).await;
    match status {
        "502" | "504" => assert_eq!(again.status, StatusCode::CONFLICT, "{fault}"),
        _ => assert_eq!(again.status, StatusCode::OK, "{fault}: {}", again.body),
    }
}

/// Covers 24.9.
#[tokio::test]
async fn protocol_errors_map_to_their_status() {
    let checkout = Checkout::start().await;
    println!("| fault | status | service_status | error_source |\n| --- | --- | --- | --- |");
    for (code, status) in [
        ("101", "400"),
        ("102", "400"),
        ("103", "400"),
        ("201", "400"),
        ("202", "400"),
        ("203", "400"),
        ("204", "400"),
        ("301", "400"),
        ("302", "400"),
        ("303", "403"),
        ("304", "400"),
        ("305", "400"),
        ("306", "400"),
        ("307", "400"),
        ("402", "504"),
        ("403", "502"),
        ("404", "502"),
        ("405", "502"),
    ] {
        let request = payment_of(&format!("991{code}"));
        expect_error(&checkout, &format!("Erro {code}"), request, status).await;
    }
    let mut unknown = payment();
    unknown["merchant_info"]["mid"] = "unknown-7".into();
    expect_error(&checkout, "unknown merchant", unknown, "403").await;
}

/// Covers 24.9.
#[tokio::test]
async fn slow_broken_and_unreachable_networks_are_reported() {
    let mut checkout = Checkout::start_with(CheckoutOptions {
        answer_timeout: Some(Duration::from_secs(1)),
        ..CheckoutOptions::default()
    })
    .await;
    println!("| fault | status | service_status | error_source |\n| --- | --- | --- | --- |");
    for (fault_kind, status) in [
        ("stall", "504"),
        ("refuse", "502"),
        ("http-500", "502"),
        ("garbage", "502"),
    ] {
        let fault = json!({"kind": "AReq", "what": fault_kind, "times": 1, "seconds": 5});
        checkout.control("/control/trouble", fault).await;
        expect_error(&checkout, fault_kind, payment(), status).await;
    }
    expect_error(
        &checkout,
        "a critical extension",
        payment_of("990102"),
        "502",
    )
    .await;

    let session = checkout.create_session(&card_number("0000")).await;
    checkout.simulator.take().unwrap().stop().await;
    for expected in [StatusCode::FAILED_DEPENDENCY, StatusCode::CONFLICT] {
        let response = checkout.authenticate(id_of(&session), payment()).await;
        assert_eq!(response.status, expected, "{}", response.body);
        if expected == StatusCode::FAILED_DEPENDENCY {
            assert_eq!(response.body["error"]["service_status"], "502");
            assert_eq!(response.body["error"]["error_source"], "Directory Server");
        }
    }
}

/// Concurrent and later requests send no second AReq.
#[tokio::test]
async fn sessions_are_authenticated_once() {
    let checkout = Arc::new(Checkout::start().await);
    let session = checkout.create_session(&card_number("0000")).await;
    let id = id_of(&session).to_owned();
    let before = checkout.received_count("AReq").await;
    let mut requests = JoinSet::new();
    for _ in 0..10 {
        let (checkout, id) = (Arc::clone(&checkout), id.clone());
        requests.spawn(async move { checkout.authenticate(&id, payment_of("990201")).await });
    }
    let mut statuses: Vec<u16> = Vec::new();
    while let Some(response) = requests.join_next().await {
        statuses.push(response.unwrap().status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert_eq!(statuses[1..], [409; 9]);
    let after = checkout.authenticate(&id, payment()).await;
    assert_eq!(after.status, StatusCode::CONFLICT);
    assert_eq!(checkout.received_count("AReq").await - before, 1);
    let challenged = checkout
        .create_and_authenticate(&card_number("0072"), payment())
        .await;
    let id = challenged["session_id"].as_str().unwrap();
    let after = checkout.authenticate(id, payment()).await;
    assert_eq!(after.status, StatusCode::CONFLICT);
}

/// An AReq that was sent is completed even if the client disconnects.
#[tokio::test]
async fn authentications_complete_after_the_client_disconnects() {
    let checkout = Checkout::start().await;
    let session = checkout.create_session(&card_number("0000")).await;
    let id = id_of(&session);
    let path = format!("/3ds/sessions/{id}/authenticate");
    let request = checkout.merchant.request(http::Method::POST, &path);
    let request = request
        .header("content-type", "application/json")
        .timeout(Duration::from_millis(300))
        .body(payment_of("990201").to_string());
    assert!(request.send().await.is_err());
    let mut status = Value::Null;
    for _ in 0..50 {
        status = checkout.read(id).await.body["authentication"]["authentication_status"].clone();
        if !status.is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(status, "successful");
}

/// An idempotency key makes both requests safe to retry.
#[tokio::test]
async fn repeated_requests_with_a_key_get_the_same_response() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0070")).await;
    let new = json!({"token_id": token, "device": "browser",
                     "device_info": super::requests::browser()});
    let send = async |path: &str, key: &str, body: &Value| {
        let request = checkout.merchant.request(http::Method::POST, path);
        let request = request
            .header("content-type", "application/json")
            .header("bt-idempotency-key", key)
            .body(body.to_string());
        checkout.merchant.send(request).await
    };
    let first = send("/3ds/sessions", "create-1", &new).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    let again = send("/3ds/sessions", "create-1", &new).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    let path = format!("/3ds/sessions/{}/authenticate", first.id());
    let before = checkout.received_count("AReq").await;
    let authenticated = send(&path, "ask-1", &payment()).await;
    assert_eq!(
        authenticated.status,
        StatusCode::OK,
        "{}",
        authenticated.body
    );
    let again = send(&path, "ask-1", &payment()).await;
    assert_eq!(
        (again.status, &again.body),
        (authenticated.status, &authenticated.body)
    );
    assert_eq!(checkout.received_count("AReq").await - before, 1);
    let other = send(&path, "ask-2", &payment()).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
}
