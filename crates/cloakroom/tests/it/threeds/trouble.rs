//! Trouble with a network: what the merchant is told, and whether it may ask again.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::checkout::{Checkout, Plan, digits, id_of};
use super::requests::{payment, payment_of};

/// Asks, is told of trouble, and asks again.
async fn meet(checkout: &Checkout, what: &str, request: Value, status: &str) {
    let session = checkout.created(&digits("0000")).await;
    let id = id_of(&session);
    let answer = checkout.authenticate(id, request).await;
    println!(
        "| {what} | {} | {} | {} |",
        answer.status.as_u16(),
        answer.body["error"]["service_status"],
        answer.body["error"]["error_source"]
    );
    assert_eq!(
        answer.status,
        StatusCode::FAILED_DEPENDENCY,
        "{what}: {}",
        answer.body
    );
    assert_eq!(answer.body["title"], "3DS Service Error");
    assert_eq!(answer.body["status"], 424);
    let error = &answer.body["error"];
    assert_eq!(error["service_status"], status, "{what}: {error}");
    assert_eq!(error["error_source"], "Directory Server", "{what}");
    assert_eq!(error["session_id"], id);
    assert!(checkout.read(id).await.body["authentication"].is_null());

    let again = checkout.authenticate(id, payment()).await;
    match status {
        "502" | "504" => assert_eq!(again.status, StatusCode::CONFLICT, "{what}"),
        _ => assert_eq!(again.status, StatusCode::OK, "{what}: {}", again.body),
    }
}

/// Covers 24.9.
#[tokio::test]
async fn each_error_of_the_protocol_has_its_status() {
    let checkout = Checkout::start().await;
    println!("| trouble | answer | service_status | error_source |\n| --- | --- | --- | --- |");
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
        meet(&checkout, &format!("Erro {code}"), request, status).await;
    }
    let mut unknown = payment();
    unknown["merchant_info"]["mid"] = "unknown-7".into();
    meet(&checkout, "unknown merchant", unknown, "403").await;
}

/// Covers 24.9.
#[tokio::test]
async fn a_network_that_is_slow_broken_or_gone_is_told_of() {
    let mut checkout = Checkout::start_with(Plan {
        answer_timeout: Some(Duration::from_secs(1)),
        ..Plan::default()
    })
    .await;
    println!("| trouble | answer | service_status | error_source |\n| --- | --- | --- | --- |");
    for (what, status) in [
        ("stall", "504"),
        ("refuse", "502"),
        ("http-500", "502"),
        ("garbage", "502"),
    ] {
        let trouble = json!({"kind": "AReq", "what": what, "times": 1, "seconds": 5});
        checkout.control("/control/trouble", trouble).await;
        meet(&checkout, what, payment(), status).await;
    }
    meet(
        &checkout,
        "a critical extension",
        payment_of("990102"),
        "502",
    )
    .await;

    let session = checkout.created(&digits("0000")).await;
    checkout.simulator.take().unwrap().stop().await;
    for expected in [StatusCode::FAILED_DEPENDENCY, StatusCode::CONFLICT] {
        let answer = checkout.authenticate(id_of(&session), payment()).await;
        assert_eq!(answer.status, expected, "{}", answer.body);
        if expected == StatusCode::FAILED_DEPENDENCY {
            assert_eq!(answer.body["error"]["service_status"], "502");
            assert_eq!(answer.body["error"]["error_source"], "Directory Server");
        }
    }
}

/// Whoever asks at the same moment, or after the answer, asks nobody.
#[tokio::test]
async fn a_session_is_asked_about_once() {
    let checkout = Arc::new(Checkout::start().await);
    let session = checkout.created(&digits("0000")).await;
    let id = id_of(&session).to_owned();
    let before = checkout.received("AReq").await;
    let mut asking = JoinSet::new();
    for _ in 0..10 {
        let (checkout, id) = (Arc::clone(&checkout), id.clone());
        asking.spawn(async move { checkout.authenticate(&id, payment_of("990201")).await });
    }
    let mut statuses: Vec<u16> = Vec::new();
    while let Some(answer) = asking.join_next().await {
        statuses.push(answer.unwrap().status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert_eq!(statuses[1..], [409; 9]);
    let after = checkout.authenticate(&id, payment()).await;
    assert_eq!(after.status, StatusCode::CONFLICT);
    assert_eq!(checkout.received("AReq").await - before, 1);
    let challenged = checkout.authenticated(&digits("0072"), payment()).await;
    let id = challenged["session_id"].as_str().unwrap();
    let after = checkout.authenticate(id, payment()).await;
    assert_eq!(after.status, StatusCode::CONFLICT);
}

/// A question that was sent is followed up, whoever waits for it.
#[tokio::test]
async fn a_client_that_leaves_loses_nothing() {
    let checkout = Checkout::start().await;
    let session = checkout.created(&digits("0000")).await;
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

/// A key makes both requests safe to repeat.
#[tokio::test]
async fn a_repeated_request_gets_the_same_answer() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0070")).await;
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
    let before = checkout.received("AReq").await;
    let asked = send(&path, "ask-1", &payment()).await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.body);
    let again = send(&path, "ask-1", &payment()).await;
    assert_eq!((again.status, &again.body), (asked.status, &asked.body));
    assert_eq!(checkout.received("AReq").await - before, 1);
    let other = send(&path, "ask-2", &payment()).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
}
