//! Repeated issuer declines, and the public keys they block.

use cloakroom::access::ApplicationKind;
use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, CheckoutOptions, card_number, id_of, page};
use super::hosted::{key, new_session, nonce};
use super::requests::{browser, payment};

const LIMIT: usize = 3;

async fn start() -> Checkout {
    Checkout::start_with(CheckoutOptions {
        refusal_limit: Some(LIMIT),
        ..CheckoutOptions::default()
    })
    .await
}

/// Covers 24.19.
///
/// F14: card testers use the page of a shop.
#[tokio::test]
async fn public_keys_with_too_many_declined_cards_are_blocked() {
    let checkout = start().await;
    let earlier = checkout.create_session(&card_number("0000")).await;
    // Neither success nor a challenge counts.
    for tail in ["0000", "0020", "0070"] {
        checkout
            .create_and_authenticate(&card_number(tail), payment())
            .await;
    }
    // Failed, rejected and unavailable count.
    for tail in ["0010", "0030", "0050"] {
        checkout
            .create_and_authenticate(&card_number(tail), payment())
            .await;
    }
    let token = checkout.create_token(&card_number("0000")).await;
    let new = json!({"token_id": token, "device": "browser", "device_info": browser()});
    let rejected = checkout.page.post("/3ds/sessions", new.clone()).await;
    assert_eq!(
        rejected.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        rejected.body
    );
    let wait: u64 = rejected.header("retry-after").parse().unwrap();
    assert!((3_500..=3_600).contains(&wait), "{wait}");
    // Sessions created before are not authenticated either.
    let requests = checkout.received_count("AReq").await;
    let rejected = checkout.authenticate(id_of(&earlier), payment()).await;
    assert_eq!(
        rejected.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        rejected.body
    );
    assert_eq!(checkout.received_count("AReq").await, requests);

    // Another public key and the server of the merchant are not blocked.
    let other = page(&checkout.vault, &checkout.tenant).await;
    for client in [&other, &checkout.merchant] {
        let response = client.post("/3ds/sessions", new.clone()).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    }
}

/// F14: a failed challenge counts when its result arrives.
#[tokio::test]
async fn failed_challenges_count_as_declines() {
    let checkout = start().await;
    for _ in 0..LIMIT {
        let session = checkout.create_session(&card_number("0071")).await;
        let response = checkout.authenticate(id_of(&session), payment()).await;
        assert_eq!(response.body["authentication_status"], "challenge");
        let html = checkout.open_challenge(&response.body).await;
        checkout.complete_challenge(html).await;
        let result = checkout.result(id_of(&session)).await;
        assert_eq!(result.body["authentication_status"], "failed");
    }
    let rejected = checkout.request_session(&card_number("0000")).await;
    assert_eq!(rejected.status, StatusCode::TOO_MANY_REQUESTS);
}

/// F14: the hosted page counts toward the public key in its URL and the IP address of the browser.
#[tokio::test]
async fn hosted_pages_stop_after_too_many_declines() {
    let checkout = start().await;
    let public = key(&checkout, ApplicationKind::Public).await;
    let anonymous = checkout.vault.client_with(None);
    let mut statuses = Vec::new();
    for _ in 0..=LIMIT {
        let token = checkout.create_token(&card_number("0110")).await;
        let created = checkout
            .merchant
            .post("/3ds/sessions", new_session(&token))
            .await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        let url = |call: &str| format!("/3ds/redirect/{}{call}?apiKey={public}", created.id());
        let body = json!({"nonce": nonce(&checkout, &url("")).await, "device_info": browser()});
        let device = anonymous.post(&url("/device"), body.clone()).await;
        let authentication = anonymous.post(&url("/authenticate"), body.clone()).await;
        statuses.push((device.status.as_u16(), authentication.status.as_u16()));
        // The cardholder returns to the shop in any case.
        let finished = anonymous.post(&url("/finish"), body).await;
        assert_eq!(finished.status, StatusCode::OK, "{}", finished.body);
    }
    assert_eq!(statuses, [(200, 200), (200, 200), (200, 200), (429, 429)]);
    assert_eq!(checkout.received_count("AReq").await, LIMIT as u64);
}
