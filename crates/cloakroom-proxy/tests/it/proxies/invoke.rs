//! Invoking pre-configured proxies: keys, authentication, configuration values, and other tenants.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::doctor;
use cloakroom_testkit::{Reply, TestVault, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CARD_NUMBER, Fixture};

async fn card_token(fixture: &Fixture) -> String {
    let card = json!({"type": "card", "data": {"number": CARD_NUMBER, "expiration_month": 12, "expiration_year": 2040}});
    let created = fixture.caller.post("/tokens", card).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    created.id()
}

/// Covers 29.19, 29.37.
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
        .header(
            "x-signature",
            "{{ proxy.request.body | hmac: 'sha-256', proxy.config.KEY | to_base16 }}",
        );
    let body = json!({"number": format!("{{{{ {token} | json: '$.number' }}}}")});
    let invoked = fixture.caller.send(request.body(body.to_string())).await;

    assert_eq!(invoked.status, StatusCode::OK, "{}", invoked.body);
    let received = fixture.destination.last();
    assert_eq!(received.method, Method::POST);
    assert_eq!(received.target, "/v1/charges?expand=all");
    // HMAC-SHA-256 of the body that is sent.
    assert_eq!(received.headers["x-signature"].len(), 64);
    let body: Value = serde_json::from_str(&received.body).unwrap();
    assert_eq!(body, json!({"number": CARD_NUMBER}));
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

/// `doctor` names them; anybody who knows the key of one sends requests with the credentials that it adds.
#[tokio::test]
async fn doctor_names_proxies_that_need_no_key() {
    let fixture = Fixture::start().await;
    let open = fixture.create(json!({"require_auth": false})).await;
    let closed = fixture.create(json!({"name": "Closed"})).await;

    let findings = doctor::diagnose(&fixture.vault.vault.config, None).await;

    let warnings: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.area == "proxies")
        .map(|finding| finding.what.as_str())
        .collect();
    let (open, closed) = (open["id"].as_str().unwrap(), closed["id"].as_str().unwrap());
    let tenant = fixture.tenant.id.uuid;
    let expected = format!("proxy {open} of tenant {tenant} has require_auth = false");
    assert!(
        warnings.len() == 1 && warnings[0].contains(&expected),
        "{warnings:?}"
    );
    assert!(!warnings[0].contains(closed));
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
}

/// S5: whoever invoked a proxy put its configuration values where destinations repeat them.
///
/// Covers 29.20.
#[tokio::test]
async fn configuration_values_are_not_for_callers() {
    let fixture = Fixture::start().await;
    let secret = "sk_live_SECRET_42";
    let proxy = fixture
        .create(json!({"configuration": {"KEY": secret}}))
        .await;
    let received = fixture.destination.received().len();
    for expression in [
        "{{ config: KEY }}",
        "{{ proxy.config.KEY }}",
        "{{ proxy.config }}",
        "{{ config: NONE }}",
    ] {
        let body = json!({"metadata": expression});
        let in_body = fixture.invoke(&fixture.caller, &proxy, body).await;
        let request = fixture.caller.request(Method::POST, "/proxy");
        let request = request.header("bt-proxy-key", proxy["key"].as_str().unwrap());
        let in_header = fixture.caller.send(request.header("x-a", expression)).await;
        for rejected in [in_body, in_header] {
            assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{expression}");
        }
    }
    assert_eq!(fixture.destination.received().len(), received);
    for expression in [
        "{{ proxy | json: '$.config.KEY' }}",
        "{{ proxy | stringify }}",
        "{{ proxy.request.method | append: proxy.config.KEY }}",
        "{{ proxy.request.method | append: proxy['config']['KEY'] }}",
        "{{ proxy.request.method | replace: 'P', proxy.config.KEY }}",
        "{{ proxy.request.method | hmac: 'sha-256', 'k' | to_base16 | append: proxy.config }}",
    ] {
        let request = fixture.caller.request(Method::POST, "/proxy");
        let request = request.header("bt-proxy-key", proxy["key"].as_str().unwrap());
        fixture.caller.send(request.header("x-a", expression)).await;
        let requests = format!("{:?}", fixture.destination.received());
        assert!(!requests.contains(secret), "{expression}: {requests}");
    }
}

/// A response must not return what a transform of the request added.
///
/// Covers 29.36.
#[tokio::test]
async fn a_response_with_a_configuration_value_is_withheld() {
    let fixture = Fixture::start().await;
    let secret = "sk_live_SECRET_42";
    let add = json!([{"type": "append_json", "options": {"value": "{{ config: KEY }}", "location": "$.key"}}]);
    let attributes = json!({"configuration": {"KEY": secret}, "request_transforms": add});
    let proxy = fixture.create(attributes).await;
    for (body, expected) in [
        ("{}".to_owned(), StatusCode::OK),
        (format!("[\"{secret}\"]"), StatusCode::BAD_GATEWAY),
    ] {
        fixture.destination.reply(Reply::json(body));
        let invoked = fixture
            .invoke(&fixture.caller, &proxy, json!({"a": 1}))
            .await;
        assert_eq!(invoked.status, expected, "{}", invoked.body);
        assert!(!String::from_utf8_lossy(&invoked.bytes).contains(secret));
    }
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
