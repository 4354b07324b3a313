//! Updating the device of a session.

use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, card_number, id_of, merchant, page};
use super::requests::{app, payment};

/// Covers 24.3.
#[tokio::test]
async fn apps_update_the_device_of_their_own_sessions_only() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0000")).await;
    let new = json!({"token_id": token, "device": "app"});
    let created = checkout.page.post("/3ds/sessions", new).await;
    let path = format!("/3ds/sessions/{}", created.id());
    let early = checkout.authenticate(&created.id(), payment()).await;
    assert_eq!(early.status, StatusCode::BAD_REQUEST);
    assert!(
        early.refused().contains(&"device_info.sdk_transaction_id"),
        "{}",
        early.body
    );

    let update = json!({"device_info": app()});
    let other = page(&checkout.vault, &checkout.tenant).await;
    assert_eq!(
        other.put(&path, update.clone()).await.status,
        StatusCode::NOT_FOUND
    );
    let other_tenant = merchant(&checkout.vault, &checkout.vault.tenant().await).await;
    assert_eq!(
        other_tenant.put(&path, update.clone()).await.status,
        StatusCode::NOT_FOUND
    );
    let response = checkout.page.put(&path, update.clone()).await;
    assert_eq!(response.status, StatusCode::OK);
    for name in [
        "id",
        "method_url",
        "method_notification_url",
        "directory_server_id",
        "cardBrand",
    ] {
        assert_eq!(response.body[name], created.body[name], "{name}");
    }
    let read = checkout.read(&created.id()).await.body;
    assert_eq!(read["device"], "mobile");
    let response = checkout.authenticate(&created.id(), payment()).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let late = checkout.page.put(&path, update.clone()).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    let in_browser = checkout.create_session(&card_number("0000")).await;
    let path = format!("/3ds/sessions/{}", id_of(&in_browser));
    assert_eq!(
        checkout.page.put(&path, update).await.status,
        StatusCode::NOT_FOUND
    );
}
