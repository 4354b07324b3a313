//! Creating 3DS sessions.

use cloakroom_testkit::{TestDatabase, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, card_number, id_of, merchant};
use super::requests::{app, browser, payment};

/// Covers 24.1, 24.3.
#[tokio::test]
async fn invalid_session_requests_are_rejected_by_attribute() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0000")).await;
    let no_card = checkout
        .merchant
        .post("/tokens", json!({"type": "token", "data": "x"}))
        .await
        .id();
    let merchant = |more: Value| merged(json!({"type": "merchant"}), more);
    let cases = [
        (merchant(json!({})), vec!["token_id"]),
        (
            merchant(json!({"token_id": token, "token_intent_id": token})),
            vec!["token_intent_id"],
        ),
        (
            merchant(json!({"token_id": token, "pan": token})),
            vec!["pan"],
        ),
        (merchant(json!({"token_id": "nothing"})), vec!["token_id"]),
        (
            merchant(json!({"token_intent_id": "nothing"})),
            vec!["token_intent_id"],
        ),
        (merchant(json!({"pan": "4242424242424242"})), vec!["pan"]),
        (merchant(json!({"token_id": no_card})), vec!["token_id"]),
        (
            merchant(json!({"token_id": token, "type": "both"})),
            vec!["device", "type"],
        ),
        (
            merchant(json!({"token_id": token, "metadata": {"card": "4242424242424242"}})),
            vec!["metadata"],
        ),
        (
            merchant(json!({"token_id": token, "callback_urls": {}})),
            vec!["callback_urls"],
        ),
        (json!({"token_id": token}), vec!["device"]),
        (
            json!({"token_id": token, "device": "phone"}),
            vec!["device"],
        ),
        (
            json!({"token_id": token, "device": "browser", "device_info": browser(),
                   "web_challenge_mode": "popup"}),
            vec!["web_challenge_mode"],
        ),
    ];
    for (new, expected) in cases {
        let response = checkout.merchant.post("/3ds/sessions", new.clone()).await;

        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{new}");
        assert_eq!(response.refused(), expected, "{new}: {}", response.body);
        assert!(
            !response.body.to_string().contains("4242424242424242"),
            "{new}"
        );
    }
}

/// Covers 24.3.
#[tokio::test]
async fn browser_sessions_require_eight_device_fields_and_merchant_sessions_none() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0000")).await;
    let names: Vec<String> = browser().as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 8);
    for name in &names {
        let mut device = browser();
        device.as_object_mut().unwrap().remove(name);
        let new = json!({"token_id": token, "device": "browser", "device_info": device});
        let response = checkout.page.post("/3ds/sessions", new).await;

        assert_eq!(
            response.refused(),
            [format!("device_info.{name}")],
            "{}",
            response.body
        );
    }
    let new = json!({"token_id": token, "type": "merchant", "device": "fridge",
                     "device_info": {"browser_tz": "late"}});
    let created = checkout.merchant.post("/3ds/sessions", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let read = checkout.read(&created.id()).await.body;
    assert_eq!(read["device"], Value::Null);
    assert_eq!(read["device_info"], Value::Null);
}

/// Covers 24.2.
#[tokio::test]
async fn metadata_is_returned() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0000")).await;
    let new = json!({"token_id": token, "type": "merchant", "metadata": {"order": "7"}});
    let created = checkout.merchant.post("/3ds/sessions/", new).await;
    let mut request = payment();
    request["authentication_type"] = "other-payment".into();
    request["decoupled_challenge_max_time"] = 10.into();
    request["metadata"] = json!({"try": "1"});
    let response = checkout.authenticate(&created.id(), request).await;
    let read = checkout.read(&created.id()).await.body;

    assert_eq!(created.body["metadata"], json!({"order": "7"}));
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(read["metadata"], json!({"order": "7", "try": "1"}));
}

/// I12: resources of another tenant do not exist for the caller.
#[tokio::test]
async fn sessions_and_cards_of_other_tenants_are_unknown() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0000")).await;
    let session = checkout.create_session(&card_number("0000")).await;
    let other = merchant(&checkout.vault, &checkout.vault.tenant().await).await;
    let unknown = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    for tail in ["", "/challenge-result"] {
        let path = |id: &str| format!("/3ds/sessions/{id}{tail}");
        let foreign = other.get(&path(id_of(&session))).await;
        assert_eq!(foreign.status, StatusCode::NOT_FOUND);
        assert_eq!(foreign.bytes, other.get(&path(unknown)).await.bytes);
    }
    let path = |id: &str| format!("/3ds/sessions/{id}/authenticate");
    let foreign = other.post(&path(id_of(&session)), payment()).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    assert_eq!(
        foreign.bytes,
        other.post(&path(unknown), payment()).await.bytes
    );
    let new = |id: &str| json!({"type": "merchant", "token_id": id});
    let foreign = other.post("/3ds/sessions", new(&token)).await;
    assert_eq!(foreign.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        foreign.bytes,
        other.post("/3ds/sessions", new(unknown)).await.bytes
    );
    assert_eq!(checkout.received_count("AReq").await, 0);
}

/// Covers 24.2.
#[tokio::test]
async fn merchant_sessions_return_the_method_url_of_the_range() {
    let checkout = Checkout::start().await;
    for (tail, has_method) in [("0000", true), ("0100", false)] {
        let token = checkout.create_token(&card_number(tail)).await;
        let new = json!({"token_id": token, "type": "merchant"});
        let created = checkout.merchant.post("/3ds/sessions", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        assert_eq!(created.body["method_url"].is_string(), has_method, "{tail}");
        let read = checkout.read(&created.id()).await.body;
        assert_eq!(created.body["method_url"], read["method"]["method_url"]);
    }
}

fn merged(mut into: Value, more: Value) -> Value {
    let more = more.as_object().cloned().unwrap_or_default();
    into.as_object_mut().unwrap().extend(more);
    into
}

/// Covers 24.14.
#[tokio::test]
async fn tenants_without_the_quota_are_forbidden() {
    let change = |config: &mut cloakroom::config::Config| config.quotas.threeds = false;
    let vault = TestVault::start_with(TestDatabase::create().await, change).await;
    let tenant = vault.tenant().await;
    let client = merchant(&vault, &tenant).await;
    let path = "/3ds/sessions/0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0";
    let responses = [
        client
            .post(
                "/3ds/sessions",
                json!({"token_id": "x", "type": "merchant"}),
            )
            .await,
        client.put(path, json!({"device_info": app()})).await,
        client.get(path).await,
        client
            .post(&format!("{path}/authenticate"), payment())
            .await,
        client.get(&format!("{path}/challenge-result")).await,
    ];
    for response in responses {
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{}", response.body);
        let detail = response.body["detail"].as_str().unwrap();
        assert!(detail.contains("3-D Secure is not enabled"), "{detail}");
    }
}
