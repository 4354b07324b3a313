//! The hosted page: who may see it, and whose calls it believes.

use cloakroom::access::{ApplicationKind, Permission};
use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, digits};
use super::requests::{browser, payment};
use crate::support::grants;

const SUCCESS: &str = "https://shop.example/thanks";
const FAILURE: &str = "https://shop.example/sorry";

fn new_session(token: &str) -> Value {
    json!({
        "token_id": token, "device": "browser", "authentication_request": payment(),
        "callback_urls": {"success": SUCCESS, "failure": FAILURE},
    })
}

async fn key(checkout: &Checkout, kind: ApplicationKind) -> String {
    let may = grants(&[Permission::ThreedsSessionCreate]);
    checkout.vault.holder(&checkout.tenant, kind, may).await.key
}

/// The nonce in the page that is served.
async fn nonce(checkout: &Checkout, path: &str) -> String {
    let request = checkout
        .vault
        .client_with(None)
        .request(http::Method::GET, path);
    let page = request.send().await.unwrap().text().await.unwrap();
    let (_, rest) = page.split_once("\"nonce\":\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_hosted_page_needs_all_of_its_settings() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0000")).await;
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
        let answer = checkout.merchant.post("/3ds/sessions", new).await;
        assert_eq!(answer.refused(), [expected], "{}", answer.body);
    }
    let mut new = new_session(&token);
    new["authentication_request"]["cardholder_info"] = Value::Null;
    let answer = checkout.merchant.post("/3ds/sessions", new).await;
    assert_eq!(answer.refused(), ["authentication_request.cardholder_info"]);
}

#[tokio::test]
async fn a_hosted_page_runs_for_a_public_key_of_the_tenant_and_the_page_served_last() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0100")).await;
    let created = checkout
        .merchant
        .post("/3ds/sessions", new_session(&token))
        .await;
    let redirect = created.body["redirect_url"].as_str().unwrap().to_owned();
    let path = format!("/3ds/redirect/{}", created.id());
    assert!(redirect.ends_with(&path), "{redirect}");
    let anyone = checkout.vault.client_with(None);
    let private = key(&checkout, ApplicationKind::Private).await;
    let stranger = checkout.vault.tenant().await;
    let may = grants(&[Permission::ThreedsSessionCreate]);
    let stranger = checkout
        .vault
        .holder(&stranger, ApplicationKind::Public, may)
        .await
        .key;
    for (key, status) in [
        ("", StatusCode::UNAUTHORIZED),
        (private.as_str(), StatusCode::FORBIDDEN),
        (stranger.as_str(), StatusCode::NOT_FOUND),
    ] {
        let answer = anyone.get(&format!("{path}?apiKey={key}")).await;
        assert_eq!(answer.status, status);
    }

    let public = key(&checkout, ApplicationKind::Public).await;
    let address = |call: &str| format!("{path}{call}?apiKey={public}");
    let stale = nonce(&checkout, &address("")).await;
    let nonce = nonce(&checkout, &address("")).await;
    let told = |nonce: &str| json!({"nonce": nonce, "device_info": browser()});
    for call in ["/device", "/authenticate"] {
        let answer = anyone.post(&address(call), told(&stale)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{call}");
    }
    let device = anyone.post(&address("/device"), told(&nonce)).await;
    assert_eq!(device.status, StatusCode::OK, "{}", device.body);
    let asked = anyone.post(&address("/authenticate"), told(&nonce)).await;
    assert_eq!(asked.body, json!({"status": "successful"}));
    let finished = anyone.post(&address("/finish"), told(&nonce)).await;
    assert_eq!(finished.body, json!({"location": SUCCESS}));
    let session = checkout.read(&created.id()).await.body;
    assert_eq!(
        session["authentication"]["authentication_status"],
        "successful"
    );
    let twice = anyone.post(&address("/authenticate"), told(&nonce)).await;
    assert_eq!(twice.status, StatusCode::CONFLICT, "{}", twice.body);
}
