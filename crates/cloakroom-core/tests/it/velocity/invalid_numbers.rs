//! Public keys that send invalid card numbers.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{Client, TestRedis, grants, rule};
use http::{Method, StatusCode};
use serde_json::json;

use super::{FORGET, attacker, card, is_compared, start};

/// 16 digits that fail the Luhn check.
const INVALID: &str = "4242424242424241";

/// Sends invalid numbers and returns how many got a validation error rather than a velocity rejection.
async fn send_invalid(clients: &[Client], count: usize) -> usize {
    let mut tolerated = 0;
    for client in clients.iter().cycle().take(count) {
        let response = client.post("/tokens", card(INVALID)).await;
        match response.status {
            StatusCode::BAD_REQUEST => tolerated += 1,
            _ => assert!(!is_compared(&response)),
        }
    }
    tolerated
}

/// Covers 23.5.
#[tokio::test]
async fn public_keys_that_send_invalid_numbers_compare_nothing_for_ten_minutes() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let first = start(redis).await;
        let client = attacker(&first, ApplicationKind::Public).await;
        let second = first.second_node().await;
        let nodes = match redis {
            Some(_) => vec![client.clone(), client.at(&second.base_url)],
            None => vec![client.clone()],
        };

        let tolerated = send_invalid(&nodes, 40).await;
        let invalid = client.post("/tokens", card(INVALID)).await;
        let valid = client.post("/tokens", card("4242424242424242")).await;
        let intent = client
            .post("/token-intents", card("4242424242424242"))
            .await;
        let note = client
            .post("/tokens", json!({"type": "token", "data": "a note"}))
            .await;
        let another = attacker(&first, ApplicationKind::Public).await;
        let another = another.post("/tokens", card("4242424242424242")).await;

        assert_eq!(tolerated, 10);
        // Others share the address: their cards are stored.
        for stored in [&valid, &intent] {
            assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.body);
            assert!(!is_compared(stored), "{}", stored.body);
        }
        let wait: u64 = invalid.header("retry-after").parse().unwrap();
        assert!((590..=600).contains(&wait), "{wait}");
        assert_eq!(note.status, StatusCode::CREATED);
        assert!(is_compared(&another), "{}", another.body);
    }
}

#[tokio::test]
async fn deleted_counters_in_redis_tolerate_no_further_invalid_number() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Public).await;

    let mut tolerated = 0;
    for _ in 0..5 {
        tolerated += send_invalid(std::slice::from_ref(&client), 6).await;
        redis.script(FORGET, "").await;
    }
    let valid = client.post("/tokens", card("4242424242424242")).await;

    assert_eq!(tolerated, 10);
    assert!(!is_compared(&valid));
}

/// Covers 23.5.
#[tokio::test]
async fn private_keys_and_other_errors_are_not_counted() {
    let vault = start(None).await;
    let server = attacker(&vault, ApplicationKind::Private).await;
    let browser = attacker(&vault, ApplicationKind::Public).await;

    assert_eq!(send_invalid(&[server], 30).await, 30);
    for _ in 0..30 {
        let bad = [
            json!({"type": "card", "data": {"number": "4242424242424242", "cvc": "1"}}),
            json!({"type": "card", "data": {}}),
            json!({"type": "card_number", "data": null}),
            json!({"type": "network_token", "data": {"number": "1"}}),
        ];
        for body in bad {
            let response = browser.post("/tokens", body).await;
            assert_eq!(
                response.status,
                StatusCode::BAD_REQUEST,
                "{}",
                response.body
            );
        }
    }
    let valid = browser.post("/tokens", card("4242424242424242")).await;
    assert_eq!(valid.status, StatusCode::CREATED, "{}", valid.body);
}

#[tokio::test]
async fn invalid_numbers_are_counted_in_every_operation_and_document() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let granted = || {
        use Permission::{TokenCreate, TokenIntentCreate, TokenUpdate};
        let mut granted = grants(&[TokenIntentCreate]);
        granted.rules = vec![rule(1, "/", Transform::Mask, &[TokenCreate, TokenUpdate])];
        granted
    };
    let document =
        json!([card(INVALID), card(INVALID), card(INVALID), {"type": "card_number", "data": "1"}]);
    for (method, path, body, tolerated) in [
        (Method::POST, "/token-intents", card(INVALID), 10),
        (Method::POST, "/tokenize", document, 2),
        (Method::PATCH, "", json!({"data": {"number": INVALID}}), 10),
    ] {
        let holder = vault
            .holder(&tenant, ApplicationKind::Public, granted())
            .await;
        let client = vault.client_with(Some(&holder.key));
        let id = client.post("/tokens", card("5555555555554444")).await.id();
        for attempt in 0..12 {
            let response = match method {
                Method::PATCH => client.patch(&format!("/tokens/{id}"), body.clone()).await,
                _ => client.post(path, body.clone()).await,
            };
            let expected = match attempt < tolerated {
                true => StatusCode::BAD_REQUEST,
                false => StatusCode::TOO_MANY_REQUESTS,
            };
            assert_eq!(response.status, expected, "{method} {path} {attempt}");
        }
    }
}
