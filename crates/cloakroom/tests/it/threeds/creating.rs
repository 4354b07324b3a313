//! What a session is created with.

use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, digits, id_of, merchant};
use super::requests::{browser, payment};

/// Covers 24.1, 24.3.
#[tokio::test]
async fn what_a_session_is_created_with_is_checked_by_name() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0000")).await;
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
        let answer = checkout.merchant.post("/3ds/sessions", new.clone()).await;

        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{new}");
        assert_eq!(answer.refused(), expected, "{new}: {}", answer.body);
        assert!(
            !answer.body.to_string().contains("4242424242424242"),
            "{new}"
        );
    }
}

/// Covers 24.3.
#[tokio::test]
async fn a_browser_tells_eight_things_and_a_merchant_none() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0000")).await;
    let names: Vec<String> = browser().as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 8);
    for name in &names {
        let mut device = browser();
        device.as_object_mut().unwrap().remove(name);
        let new = json!({"token_id": token, "device": "browser", "device_info": device});
        let answer = checkout.page.post("/3ds/sessions", new).await;

        assert_eq!(
            answer.refused(),
            [format!("device_info.{name}")],
            "{}",
            answer.body
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
async fn what_the_caller_adds_is_given_back() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0000")).await;
    let new = json!({"token_id": token, "type": "merchant", "metadata": {"order": "7"}});
    let created = checkout.merchant.post("/3ds/sessions/", new).await;
    let mut request = payment();
    request["authentication_type"] = "other-payment".into();
    request["decoupled_challenge_max_time"] = 10.into();
    request["metadata"] = json!({"try": "1"});
    let answer = checkout.authenticate(&created.id(), request).await;
    let read = checkout.read(&created.id()).await.body;

    assert_eq!(created.body["metadata"], json!({"order": "7"}));
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    assert_eq!(read["metadata"], json!({"order": "7", "try": "1"}));
}

/// I12: what is another tenant's does not exist.
#[tokio::test]
async fn sessions_and_cards_of_another_tenant_are_like_unknown_ones() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0000")).await;
    let session = checkout.created(&digits("0000")).await;
    let stranger = merchant(&checkout.vault, &checkout.vault.tenant().await).await;
    let unknown = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    for tail in ["", "/challenge-result"] {
        let path = |id: &str| format!("/3ds/sessions/{id}{tail}");
        let foreign = stranger.get(&path(id_of(&session))).await;
        assert_eq!(foreign.status, StatusCode::NOT_FOUND);
        assert_eq!(foreign.bytes, stranger.get(&path(unknown)).await.bytes);
    }
    let path = |id: &str| format!("/3ds/sessions/{id}/authenticate");
    let foreign = stranger.post(&path(id_of(&session)), payment()).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    assert_eq!(
        foreign.bytes,
        stranger.post(&path(unknown), payment()).await.bytes
    );
    let new = |id: &str| json!({"type": "merchant", "token_id": id});
    let foreign = stranger.post("/3ds/sessions", new(&token)).await;
    assert_eq!(foreign.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        foreign.bytes,
        stranger.post("/3ds/sessions", new(unknown)).await.bytes
    );
    assert_eq!(checkout.received("AReq").await, 0);
}

fn merged(mut into: Value, more: Value) -> Value {
    let more = more.as_object().cloned().unwrap_or_default();
    into.as_object_mut().unwrap().extend(more);
    into
}
