//! Hosts that the hosted page may redirect a browser to.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::json;

use super::checkout::{CALLBACK_HOST, Checkout, card_number, merchant};
use super::hosted::{key, new_session};

/// Covers 24.17.
#[tokio::test]
async fn callback_urls_must_use_hosts_of_the_tenant() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0100")).await;
    let request_with = async |url: &str| {
        let mut new = new_session(&token);
        new["callback_urls"] = json!({"success": url, "failure": url});
        checkout.merchant.post("/3ds/sessions", new).await
    };
    for url in [
        "https://shop.example/thanks",
        "https://SHOP.example:8443/?order=7#end",
        // Test tenants may use a shop on the developer's machine.
        "http://127.0.0.1:3000/thanks",
        "http://localhost/thanks",
        "http://[::1]:3000/",
    ] {
        let response = request_with(url).await;
        assert_eq!(
            response.status,
            StatusCode::CREATED,
            "{url}: {}",
            response.body
        );
    }
    for url in [
        "https://evil.example/",
        "http://shop.example/",
        "https://shop.example.evil.example/",
        "https://evil-shop.example/",
        "https://www.shop.example/",
        "https://shop.example@evil.example/",
        "https://evil.example\\@shop.example/",
        "https://evil.example#@shop.example/",
        "https:///shop.example/",
        "https:shop.example",
        "//shop.example/",
        "javascript:alert(1)//shop.example",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        " https://shop.example/",
        "https://shop.example/\n",
        "https://shop.example./",
    ] {
        let response = request_with(url).await;
        let expected = ["callback_urls.failure", "callback_urls.success"];
        assert_eq!(response.refused(), expected, "{url}: {}", response.body);
        let rule = response.body["errors"]["callback_urls.success"].to_string();
        assert!(rule.contains("threeds_callback_hosts"), "{rule}");
    }
}

/// F14.
#[tokio::test]
async fn tenants_manage_their_callback_hosts() {
    let checkout = Checkout::start().await;
    let tenant = checkout.vault.tenant().await;
    let shop = merchant(&checkout.vault, &tenant).await;
    let permissions = grants(&[Permission::TenantUpdate, Permission::TenantRead]);
    let holder = checkout
        .vault
        .holder(&tenant, ApplicationKind::Management, permissions)
        .await;
    let manager = checkout.vault.client_with(Some(&holder.key));
    let data =
        json!({"number": card_number("0100"), "expiration_month": 12, "expiration_year": 2030});
    let token = shop
        .post("/tokens", json!({"type": "card", "data": data}))
        .await
        .id();
    let set = async |hosts: &str| {
        let settings = json!({"threeds_callback_hosts": hosts});
        let change = json!({"name": "Shop", "settings": settings});
        manager.put("/tenants/self", change).await
    };

    let none = shop.post("/3ds/sessions", new_session(&token)).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST, "{}", none.body);
    for invalid in [
        "https://shop.example",
        "shop.example/path",
        "*",
        "*.example",
        "shop.example:443",
        "a,,b",
        "127.0.0.1",
        "shop .example",
    ] {
        let rejected = set(invalid).await;
        assert_eq!(
            rejected.refused(),
            ["settings.threeds_callback_hosts"],
            "{invalid}"
        );
    }
    let changed = set("Pay.Example, shop.example").await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    let stored = &changed.body["settings"]["threeds_callback_hosts"];
    assert_eq!(stored, "pay.example,shop.example");
    let created = shop.post("/3ds/sessions", new_session(&token)).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let emptied = set("").await;
    assert_eq!(emptied.status, StatusCode::OK, "{}", emptied.body);
    let again = shop.post("/3ds/sessions", new_session(&token)).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST, "{}", again.body);
}

/// F14: removing a host from the list applies to earlier sessions, too.
#[tokio::test]
async fn removed_callback_hosts_get_no_redirects() {
    let checkout = Checkout::start().await;
    let token = checkout.create_token(&card_number("0100")).await;
    let created = checkout
        .merchant
        .post("/3ds/sessions", new_session(&token))
        .await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let public = key(&checkout, ApplicationKind::Public).await;
    let path = format!("/3ds/redirect/{}?apiKey={public}", created.id());
    let anonymous = checkout.vault.client_with(None);
    let status = async || {
        let request = anonymous.request(http::Method::GET, &path);
        request.send().await.unwrap().status()
    };
    assert_eq!(status().await, StatusCode::OK);
    let permissions = grants(&[Permission::TenantUpdate]);
    let holder = checkout
        .vault
        .holder(&checkout.tenant, ApplicationKind::Management, permissions)
        .await;
    let manager = checkout.vault.client_with(Some(&holder.key));
    let other = json!({"threeds_callback_hosts": format!("other.{CALLBACK_HOST}")});
    let change = json!({"name": "Shop", "settings": other});
    assert_eq!(
        manager.put("/tenants/self", change).await.status,
        StatusCode::OK
    );
    assert_eq!(status().await, StatusCode::FORBIDDEN);
}
