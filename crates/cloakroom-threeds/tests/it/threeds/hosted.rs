//! The hosted page: which keys may open it, and which requests it accepts.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, CheckoutOptions, card_number};
use super::requests::{browser, payment};

const SUCCESS: &str = "https://shop.example/thanks";
const FAILURE: &str = "https://shop.example/sorry";

pub(super) fn new_session(token: &str) -> Value {
    json!({
        "token_id": token, "device": "browser", "authentication_request": payment(),
        "callback_urls": {"success": SUCCESS, "failure": FAILURE},
    })
}

pub(super) async fn key(checkout: &Checkout, kind: ApplicationKind) -> String {
    let permissions = grants(&[Permission::ThreedsSessionCreate]);
    checkout
        .vault
        .holder(&checkout.tenant, kind, permissions)
        .await
        .key
}

/// The nonce of the served page.
pub(super) async fn nonce(checkout: &Checkout, path: &str) -> String {
    find_nonce(checkout, path).await.unwrap()
}

/// The same; `None` for a page without a nonce.
async fn find_nonce(checkout: &Checkout, path: &str) -> Option<String> {
    let request = checkout
        .vault
        .client_with(None)
        .request(http::Method::GET, path);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let page = response.text().await.unwrap();
    let (_, rest) = page.split_once("\"nonce\":\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Runs the hosted page of a session up to the response of its authentication.
async fn run_page(checkout: &Checkout, number: &str) -> Value {
    let token = checkout.create_token(number).await;
    let created = checkout
        .merchant
        .post("/3ds/sessions", new_session(&token))
        .await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let public = key(checkout, ApplicationKind::Public).await;
    let url = |call: &str| format!("/3ds/redirect/{}{call}?apiKey={public}", created.id());
    let nonce = nonce(checkout, &url("")).await;
    let body = json!({"nonce": nonce, "device_info": browser()});
    let anonymous = checkout.vault.client_with(None);
    let device = anonymous.post(&url("/device"), body.clone()).await;
    assert_eq!(device.status, StatusCode::OK, "{}", device.body);
    let authentication = anonymous.post(&url("/authenticate"), body).await;
    assert_eq!(
        authentication.status,
        StatusCode::OK,
        "{}",
        authentication.body
    );
    authentication.body
}

#[tokio::test]
async fn hosted_pages_require_all_settings() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0000")).await;
    let cases = [
        ("callback_urls", Value::Null, "callback_urls"),
        (
            "authentication_request",
            Value::Null,
            "authentication_request",
        ),
        ("device", json!("app"), "device"),
        (
            "callback_urls",
            json!({"success": "javascript:alert(1)", "failure": FAILURE}),
            "callback_urls.success",
        ),
        (
            "callback_urls",
            json!({"success": SUCCESS}),
            "callback_urls.failure",
        ),
    ];
    for (name, value, expected) in cases {
        let mut new = new_session(&token);
        new[name] = value;
        let response = checkout.merchant.post("/3ds/sessions", new).await;
        assert_eq!(response.refused(), [expected], "{}", response.body);
    }
    let mut new = new_session(&token);
    new["authentication_request"]["cardholder_info"] = Value::Null;
    let response = checkout.merchant.post("/3ds/sessions", new).await;
    assert_eq!(
        response.refused(),
        ["authentication_request.cardholder_info"]
    );
}

#[tokio::test]
async fn hosted_pages_require_a_public_key_of_the_tenant_and_the_latest_nonce() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0100")).await;
    let created = checkout
        .merchant
        .post("/3ds/sessions", new_session(&token))
        .await;
    let redirect = created.body["redirect_url"].as_str().unwrap().to_owned();
    let path = format!("/3ds/redirect/{}", created.id());
    assert!(redirect.ends_with(&path), "{redirect}");
    let anonymous = checkout.vault.client_with(None);
    let private = key(&checkout, ApplicationKind::Private).await;
    let other_tenant = checkout.vault.tenant().await;
    let permissions = grants(&[Permission::ThreedsSessionCreate]);
    let other_tenant = checkout
        .vault
        .holder(&other_tenant, ApplicationKind::Public, permissions)
        .await
        .key;
    for (key, status) in [
        ("", StatusCode::UNAUTHORIZED),
        (private.as_str(), StatusCode::FORBIDDEN),
        (other_tenant.as_str(), StatusCode::NOT_FOUND),
    ] {
        let response = anonymous.get(&format!("{path}?apiKey={key}")).await;
        assert_eq!(response.status, status);
    }

    let public = key(&checkout, ApplicationKind::Public).await;
    let url = |call: &str| format!("{path}{call}?apiKey={public}");
    let stale = nonce(&checkout, &url("")).await;
    let nonce = nonce(&checkout, &url("")).await;
    let body = |nonce: &str| json!({"nonce": nonce, "device_info": browser()});
    for call in ["/device", "/authenticate"] {
        let response = anonymous.post(&url(call), body(&stale)).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{call}");
    }
    let device = anonymous.post(&url("/device"), body(&nonce)).await;
    assert_eq!(device.status, StatusCode::OK, "{}", device.body);
    let authentication = anonymous.post(&url("/authenticate"), body(&nonce)).await;
    assert_eq!(authentication.body, json!({"status": "done"}));
    let finished = anonymous.post(&url("/finish"), body(&nonce)).await;
    assert_eq!(finished.body, json!({"location": SUCCESS}));
    let session = checkout.read(&created.id()).await.body;
    assert_eq!(
        session["authentication"]["authentication_status"],
        "successful"
    );
    let again = anonymous.post(&url("/authenticate"), body(&nonce)).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{}", again.body);
}

/// Covers 24.18.
///
/// F14: the page learns whether there is a challenge, and nothing that the issuer or the network reports.
#[tokio::test]
async fn hosted_pages_receive_only_challenge_or_done() {
    let checkout = Checkout::start().await;
    // Successful, failed, attempted, rejected, unavailable, and a directory server error.
    for tail in ["0100", "0110", "0120", "0130", "0150", "0190"] {
        let response = run_page(&checkout, &card_number(tail)).await;
        assert_eq!(response, json!({"status": "done"}), "{tail}");
    }
    let response = run_page(&checkout, &card_number("0170")).await;
    let names: Vec<&String> = response.as_object().unwrap().keys().collect();
    assert_eq!(names, ["status", "acs_url", "creq"], "{response}");
    assert_eq!(response["status"], "challenge");
}

/// Covers 24.18.
///
/// F14: a public key that could create hosted sessions would learn the issuer's response for any number.
#[tokio::test]
async fn public_keys_cannot_create_hosted_sessions() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0100")).await;
    let response = checkout
        .page
        .post("/3ds/sessions", new_session(&token))
        .await;
    assert_eq!(response.status, StatusCode::FORBIDDEN, "{}", response.body);
    let detail = response.body["detail"].as_str().unwrap();
    assert!(detail.contains("private key"), "{detail}");
}

/// F14: if the deployment allows hosted sessions with public keys, they are limited to cards of their application.
#[tokio::test]
async fn hosted_sessions_of_public_keys_require_cards_of_their_application() {
    let checkout = Checkout::start_with(CheckoutOptions {
        public_hosted_sessions: true,
        ..CheckoutOptions::default()
    })
    .await;
    let permissions = grants(&[
        Permission::ThreedsSessionCreate,
        Permission::TokenCreate,
        Permission::TokenIntentCreate,
    ]);
    let page = async || {
        let kind = ApplicationKind::Public;
        let holder = checkout
            .vault
            .holder(&checkout.tenant, kind, permissions.clone());
        checkout.vault.client_with(Some(&holder.await.key))
    };
    let (page, other) = (page().await, page().await);
    let data =
        json!({"number": card_number("0100"), "expiration_month": 12, "expiration_year": 2030});
    let own = page
        .post("/tokens", json!({"type": "card", "data": data}))
        .await;
    let intent = page
        .post("/token-intents", json!({"type": "card", "data": data}))
        .await;
    let stored = checkout.create_token(&card_number("0110")).await;

    let with_own = page.post("/3ds/sessions", new_session(&own.id())).await;
    assert_eq!(with_own.status, StatusCode::CREATED, "{}", with_own.body);
    let mut new = new_session("");
    new["token_id"] = Value::Null;
    new["token_intent_id"] = intent.id().into();
    let by_other = other.post("/3ds/sessions", new.clone()).await;
    assert_eq!(by_other.refused(), ["token_intent_id"]);
    let with_intent = page.post("/3ds/sessions", new).await;
    assert_eq!(
        with_intent.status,
        StatusCode::CREATED,
        "{}",
        with_intent.body
    );
    let with_stored = page.post("/3ds/sessions", new_session(&stored)).await;
    let with_unknown = page.post("/3ds/sessions", new_session("nothing")).await;
    assert_eq!(with_stored.refused(), ["token_id"], "{}", with_stored.body);
    assert_eq!(with_stored.bytes, with_unknown.bytes);
}

/// F19: the URL of a page is not enough to take over a page that was started.
#[tokio::test]
async fn started_hosted_pages_cannot_be_taken_over() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0100")).await;
    let created = checkout
        .merchant
        .post("/3ds/sessions", new_session(&token))
        .await;
    let public = key(&checkout, ApplicationKind::Public).await;
    let url = |call: &str| format!("/3ds/redirect/{}{call}?apiKey={public}", created.id());
    let anonymous = checkout.vault.client_with(None);
    let first = nonce(&checkout, &url("")).await;
    let body = json!({"nonce": first, "device_info": browser()});
    let device = anonymous.post(&url("/device"), body.clone()).await;
    assert_eq!(device.status, StatusCode::OK, "{}", device.body);

    // No other nonce is issued, neither to the cardholder's browser nor to another one.
    assert_eq!(find_nonce(&checkout, &url("")).await, None);
    let without = json!({"device_info": browser()});
    for call in ["/device", "/authenticate", "/finish"] {
        let response = anonymous.post(&url(call), without.clone()).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{call}");
    }
    let again = anonymous.post(&url("/device"), body.clone()).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.body);
    let authentication = anonymous.post(&url("/authenticate"), body.clone()).await;
    assert_eq!(
        authentication.status,
        StatusCode::OK,
        "{}",
        authentication.body
    );
    // Only the browser with the nonce gets the outcome.
    assert_eq!(find_nonce(&checkout, &url("")).await, None);
    let stolen = anonymous.post(&url("/finish"), without).await;
    assert_eq!(stolen.status, StatusCode::FORBIDDEN);
    let finished = anonymous.post(&url("/finish"), body).await;
    assert_eq!(finished.body, json!({"location": SUCCESS}));
}
