//! Retention of sessions and their data, and deletion with their token.

use cloakroom::threeds::sessions;
use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, card_number, id_of};
use super::lifetimes::node_in_future;
use super::requests::payment;

/// Covers 24.13.
///
/// F17: a finished session shows when it expires.
#[tokio::test]
async fn finished_sessions_lose_their_details_after_a_day_and_expire_after_ninety() {
    let checkout = Checkout::start().await;
    let response = checkout
        .create_and_authenticate(&card_number("0000"), payment())
        .await;
    let id = response["session_id"].as_str().unwrap();
    assert!(response["authentication_value"].is_string(), "{response}");
    let fresh = checkout.read(id).await.body;
    assert!(fresh["device_info"].is_object(), "{fresh}");
    let time = |name: &str| fresh[name].as_str().unwrap().parse::<jiff::Timestamp>();
    let lifetime = time("expiration_date").unwrap() - time("modified_date").unwrap();
    let hours = lifetime.total(jiff::Unit::Hour).unwrap();
    assert!((2_159.9..=2_160.1).contains(&hours), "{hours}");

    // Applies from that moment, swept or not.
    let node = node_in_future(&checkout, "24 hours 1 minute").await;
    let there = checkout.merchant.at(&node.base_url);
    for is_swept in [false, true] {
        if is_swept {
            assert!(sessions::sweep(&node.vault).await.unwrap() >= 1);
            assert_eq!(sessions::sweep(&node.vault).await.unwrap(), 0);
        }
        let stripped = there.get(&format!("/3ds/sessions/{id}")).await.body;
        assert_eq!(stripped["device_info"], Value::Null, "{stripped}");
        let mut expected = fresh["authentication"].clone();
        expected
            .as_object_mut()
            .unwrap()
            .remove("authentication_value");
        assert_eq!(stripped["authentication"], expected);
        assert_eq!(stripped["expiration_date"], fresh["expiration_date"]);
        let path = format!("/3ds/sessions/{id}/challenge-result");
        assert_eq!(there.get(&path).await.body, expected);
    }
    // The row no longer contains them: a node with the current time does not show them either.
    let today = checkout.read(id).await.body;
    assert_eq!(today["device_info"], Value::Null, "{today}");
    assert_eq!(today["authentication"]["authentication_value"], Value::Null);

    let node = node_in_future(&checkout, "90 days 1 minute").await;
    let there = checkout.merchant.at(&node.base_url);
    let expired = there.get(&format!("/3ds/sessions/{id}")).await;
    assert_eq!(expired.status, StatusCode::NOT_FOUND);
    assert!(sessions::sweep(&node.vault).await.unwrap() >= 1);
    assert_eq!(rows(&checkout).await, 0);
}

/// F17: the details of a challenge are removed a day after its result.
#[tokio::test]
async fn challenge_results_lose_their_value_after_a_day() {
    let checkout = Checkout::start().await;
    let session = checkout.create_session(&card_number("0070")).await;
    let response = checkout.authenticate(id_of(&session), payment()).await;
    let html = checkout.open_challenge(&response.body).await;
    checkout.complete_challenge(html).await;
    let result = checkout.result(id_of(&session)).await.body;
    assert!(result["authentication_value"].is_string(), "{result}");

    let node = node_in_future(&checkout, "24 hours 1 minute").await;
    let there = checkout.merchant.at(&node.base_url);
    let path = format!("/3ds/sessions/{}", id_of(&session));
    let stripped = there.get(&path).await.body;
    assert_eq!(
        stripped["authentication"]["authentication_status"],
        "successful"
    );
    assert_eq!(
        stripped["authentication"]["authentication_value"],
        Value::Null
    );
    assert_eq!(stripped["device_info"], Value::Null);
}

/// Covers 24.20.
///
/// F17: deleting a token deletes its 3DS sessions.
#[tokio::test]
async fn sessions_are_deleted_with_their_token() {
    let checkout = Checkout::start().await;
    let named = json!({"id": "card-of-ada", "type": "card", "data": {
        "number": card_number("0000"), "expiration_month": 12, "expiration_year": 2030}});
    let named = checkout.merchant.post("/tokens", named).await.id();
    let plain = checkout.create_token(&card_number("0000")).await;
    let other = checkout.create_session(&card_number("0000")).await;
    let mut sessions = Vec::new();
    for token in [&named, &plain] {
        let new = json!({"token_id": token, "type": "merchant"});
        let created = checkout.merchant.post("/3ds/sessions", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        sessions.push((token, created.id()));
    }
    let mut request = payment();
    request["authentication_type"] = "other-payment".into();
    request["decoupled_challenge_max_time"] = 10.into();
    let finished = checkout.authenticate(&sessions[0].1, request).await;
    assert_eq!(finished.status, StatusCode::OK, "{}", finished.body);

    for (token, session) in &sessions {
        assert_eq!(checkout.read(session).await.status, StatusCode::OK);
        let deleted = checkout.merchant.delete(&format!("/tokens/{token}")).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert_eq!(checkout.read(session).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(checkout.read(id_of(&other)).await.status, StatusCode::OK);
    assert_eq!(rows(&checkout).await, 1);
}

async fn rows(checkout: &Checkout) -> i64 {
    let database = checkout.vault.database.connect().await;
    let counted = database
        .query_one("select count(*) from threeds_session", &[])
        .await;
    counted.unwrap().get(0)
}
