//! Invoking pre-configured proxies: keys, authentication, configuration values, and other tenants.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{TestVault, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CARD_NUMBER, Fixture};

async fn card_token(fixture: &Fixture) -> String {
    let card = json!({"type": "card", "data": {"number": CARD_NUMBER, "expiration_month": 12, "expiration_year": 2040}});
    let created = fixture.caller.post("/tokens", card).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    created.id()
}

/// Covers 29.19, 29.20.
#[tokio::test]
async fn tokens_and_configuration_values_reach_the_destination_of_the_proxy() {
    let fixture = Fixture::start().await;
    let token = card_token(&fixture).await;
    let proxy = fixture
        .create(json!({"configuration": {"KEY": "sk_1"}}))
        .await;

    let request = fixture
        .caller
        .request(Method::POST, "/proxy/charges?expand=all")
        .header("bt-proxy-key", proxy["key"].as_str().unwrap())
        .header("bt-proxy-url", "https://evil.example.com")
        .header("content-type", "application/json")
        .header("authorization", "Bearer {{ config: KEY }}");
    let body = json!({"number": format!("{{{{ {token} | json: '$.number' }}}}"), "key": "{{ config: KEY }}"});
    let invoked = fixture.caller.send(request.body(body.to_string())).await;

    assert_eq!(invoked.status, StatusCode::OK, "{}", invoked.body);
    let received = fixture.destination.last();
    assert_eq!(received.method, Method::POST);
    assert_eq!(received.target, "/v1/charges?expand=all");
    assert_eq!(received.headers["authorization"], "Bearer sk_1");
    let body: Value = serde_json::from_str(&received.body).unwrap();
    assert_eq!(body, json!({"number": CARD_NUMBER, "key": "sk_1"}));
    assert!(!received.headers.contains_key("bt-proxy-key"));
}

/// Covers 29.21.
#[tokio::test]
async fn expressions_are_sent_as_they_are_if_detokenization_is_disabled() {
    let fixture = Fixture::start().await;
    let token = card_token(&fixture).await;
    let proxy = fixture
        .create(json!({"disable_detokenization": true, "configuration": {"KEY": "sk_1"}}))
        .await;
    let body = json!({"number": format!("{{{{ {token} }}}}"), "key": "{{ config: KEY }}"});

    let invoked = fixture.invoke(&fixture.caller, &proxy, body.clone()).await;

    assert_eq!(invoked.status, StatusCode::OK);
    let received: Value = serde_json::from_str(&fixture.destination.last().body).unwrap();
    assert_eq!(received, body);
}

/// An open proxy must not reveal tokens or configuration values to those who send requests through it.
///
/// Covers 29.22.
#[tokio::test]
async fn an_open_proxy_replaces_nothing_without_a_key_that_may_use_tokens() {
    let fixture = Fixture::start().await;
    let token = card_token(&fixture).await;
    let proxy = fixture
        .create(json!({"require_auth": false, "configuration": {"KEY": "sk_1"}}))
        .await;
    let public = grants(&[Permission::TokenCreate]);
    let public = fixture
        .vault
        .holder(&fixture.tenant, ApplicationKind::Public, public)
        .await;
    let public = fixture.vault.client_with(Some(&public.key));
    let anonymous = fixture.vault.client_with(None);
    let body = json!({"number": format!("{{{{ {token} }}}}"), "key": "{{ config: KEY }}", "all": "{{ proxy.config.KEY }}"});

    for client in [&public, &anonymous] {
        let invoked = fixture.invoke(client, &proxy, body.clone()).await;
        assert_eq!(invoked.status, StatusCode::OK, "{}", invoked.body);
        let received: Value = serde_json::from_str(&fixture.destination.last().body).unwrap();
        assert_eq!(received, body);
    }
    let invoked = fixture
        .invoke(&fixture.caller, &proxy, json!({"key": "{{ config: KEY }}"}))
        .await;
    assert_eq!(invoked.status, StatusCode::OK);
    assert!(fixture.destination.last().body.contains("sk_1"));
}

/// Covers 29.23.
#[tokio::test]
async fn a_proxy_rejects_callers_without_a_key_without_the_permission_and_of_other_tenants() {
    let fixture = Fixture::start().await;
    let proxy = fixture.create(json!({})).await;
    let reader = grants(&[Permission::TokenRead]);
    let reader = fixture.vault.client(&fixture.tenant, reader).await;
    let other = fixture.vault.tenant().await;
    let other = fixture
        .vault
        .client(&other, grants(&[Permission::ProxyInvoke]))
        .await;
    let anonymous = fixture.vault.client_with(None);
    let unknown = json!({"key": "11111111111111111111111111111111"});

    let cases = [
        (&anonymous, &proxy, StatusCode::UNAUTHORIZED),
        (&reader, &proxy, StatusCode::FORBIDDEN),
        (&fixture.manager, &proxy, StatusCode::FORBIDDEN),
    ];
    for (client, proxy, expected) in cases {
        let rejected = fixture.invoke(client, proxy, json!({})).await;
        assert_eq!(rejected.status, expected, "{}", rejected.body);
        assert!(
            rejected.body["proxy_error"].is_object(),
            "{}",
            rejected.body
        );
    }
    let foreign = fixture.invoke(&other, &proxy, json!({})).await;
    let unknown = fixture.invoke(&other, &unknown, json!({})).await;
    assert_eq!(foreign.body, unknown.body);
    assert!(foreign.status.is_client_error());
    assert_eq!(fixture.destination.received().len(), 0);
}

/// Covers 29.24.
#[tokio::test]
async fn a_key_that_another_node_deleted_stops_working_within_the_lifetime_of_the_cache() {
    let fixture = Fixture::start().await;
    let proxy = fixture.create(json!({})).await;
    let second: TestVault = fixture
        .vault
        .node_with(|config| {
            fixture.destination.allow(config);
            config.access.key_cache_ttl = std::time::Duration::from_millis(300);
        })
        .await;
    let caller = fixture.caller.at(&second.base_url);
    assert_eq!(
        fixture.invoke(&caller, &proxy, json!({})).await.status,
        StatusCode::OK
    );

    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
    assert_eq!(
        fixture.manager.delete(&path).await.status,
        StatusCode::NO_CONTENT
    );

    // The node that deleted it rejects the key at once, the other one when its entry expires.
    assert!(
        fixture
            .invoke(&fixture.caller, &proxy, json!({}))
            .await
            .status
            .is_client_error()
    );
    let mut attempts = 0;
    while fixture
        .invoke(&caller, &proxy, json!({}))
        .await
        .status
        .is_success()
    {
        attempts += 1;
        assert!(attempts < 100, "the key still works");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Covers 29.25.
#[tokio::test]
async fn a_destination_that_is_no_longer_allowed_gets_nothing() {
    let fixture = Fixture::start().await;
    let proxy = fixture.create(json!({})).await;
    let name = json!({"name": "A tenant", "settings": {"egress_hosts": "other.example.com"}});
    assert_eq!(
        fixture.manager.put("/tenants/self", name).await.status,
        StatusCode::OK
    );

    let rejected = fixture.invoke(&fixture.caller, &proxy, json!({})).await;

    assert!(rejected.status.is_client_error(), "{}", rejected.body);
    assert_eq!(fixture.destination.received().len(), 0);
    let saved = fixture.manager.post("/proxies", fixture.new_proxy()).await;
    assert_eq!(saved.refused(), ["destination_url"]);
}
