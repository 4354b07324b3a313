//! Who may invoke the proxy, and what of a token it sends.

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{TestVault, grants, rule};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Fixture, card, proxy_error};

/// The rules of the caller for the token's container decide what is sent.
#[tokio::test]
async fn the_callers_rules_decide_what_is_sent() {
    use Permission::{ProxyInvoke, TokenRead, TokenUse};
    use Transform::{Mask, Redact, Reveal};
    let fixture = Fixture::start().await;
    let new = json!({
        "type": "token", "data": "secret-value", "containers": ["/pci/"], "mask": "{{ data | last4 }}",
    });
    let id = fixture.client.post("/tokens", new).await.id();
    let denied = None;
    let cases = [
        (grants(&[ProxyInvoke]), Some("secret-value")),
        (grants(&[TokenUse]), Some("secret-value")),
        (ruled(&[("/pci/", Reveal, TokenUse)]), Some("secret-value")),
        (ruled(&[("/pci/", Mask, TokenUse)]), Some("alue")),
        (ruled(&[("/pci/", Redact, TokenUse)]), denied),
        (ruled(&[("/other/", Reveal, TokenUse)]), denied),
        (
            ruled(&[("/pci/", Reveal, TokenUse), ("/pci/", Mask, ProxyInvoke)]),
            Some("secret-value"),
        ),
        (
            ruled(&[("/pci/", Mask, TokenUse), ("/pci/", Reveal, ProxyInvoke)]),
            Some("alue"),
        ),
        (
            ruled(&[("/pci/", Redact, ProxyInvoke), ("/pci/", Reveal, TokenUse)]),
            denied,
        ),
        (
            ruled(&[
                ("/pci/", Reveal, TokenRead),
                ("/other/", Reveal, ProxyInvoke),
            ]),
            denied,
        ),
    ];
    for (granted, expected) in cases {
        let client = fixture.vault.client(&fixture.tenant, granted.clone()).await;
        let before = fixture.destination.received().len();

        let response = fixture
            .post_as(&client, "text/plain", format!("{{{{ {id} }}}}"))
            .await;

        match expected {
            Some(expected) => {
                assert_eq!(
                    response.status,
                    StatusCode::OK,
                    "{granted:?}: {}",
                    response.body
                );
                assert_eq!(fixture.destination.last().text(), expected, "{granted:?}");
            }
            None => {
                assert_eq!(response.status, StatusCode::FORBIDDEN, "{granted:?}");
                proxy_error(&response);
                assert_eq!(fixture.destination.received().len(), before, "{granted:?}");
            }
        }
    }
}

/// S11: a session for one name of the permission sent more than the application that authorized it, which held a
/// restriction under the other name.
#[tokio::test]
async fn a_session_sends_no_more_than_its_application_under_any_name() {
    use Permission::{ProxyInvoke, TokenUse};
    let fixture = Fixture::start().await;
    let granted = ruled(&[
        ("/", Transform::Mask, ProxyInvoke),
        ("/", Transform::Reveal, TokenUse),
    ]);
    let application = fixture.vault.client(&fixture.tenant, granted).await;
    let public = ApplicationKind::Public;
    let creates = grants(&[Permission::TokenCreate]);
    let public = fixture.vault.holder(&fixture.tenant, public, creates).await;
    let public = fixture.vault.client_with(Some(&public.key));
    for (name, transform, expected) in [
        ("token:use", "reveal", StatusCode::BAD_REQUEST),
        ("proxy:invoke", "reveal", StatusCode::BAD_REQUEST),
        ("token:use", "mask", StatusCode::OK),
    ] {
        let session = public.post("/sessions", json!({})).await;
        let rules = json!([{"description": "r", "priority": 1, "container": "/",
            "transform": transform, "permissions": [name]}]);
        let nonce = json!({"nonce": session.body["nonce"], "rules": rules});
        let authorized = application.post("/sessions/authorize", nonce).await;
        assert_eq!(
            authorized.status, expected,
            "{name} {transform}: {}",
            authorized.body
        );
    }
}

/// Access rules with one permission each.
fn ruled(rules: &[(&str, Transform, Permission)]) -> Grants {
    let rules = rules.iter().zip(1..);
    let rules = rules.map(|((container, transform, permission), priority)| {
        rule(priority, container, *transform, &[*permission])
    });
    Grants {
        rules: rules.collect(),
        ..grants(&[])
    }
}

/// Intents have no container. A rule for the default container of their type decides.
#[tokio::test]
async fn token_intents_are_sent_only_in_plaintext() {
    let fixture = Fixture::start().await;
    let intent = json!({"type": "token", "data": "intent"});
    let intent = fixture.client.post("/token-intents", intent).await.id();
    let body = format!("{{{{ token_intent: {intent} | json: '$.data' }}}}");
    for (transform, expected) in [
        (Transform::Reveal, StatusCode::OK),
        (Transform::Mask, StatusCode::FORBIDDEN),
    ] {
        let granted = ruled(&[("/", transform, Permission::TokenUse)]);
        let client = fixture.vault.client(&fixture.tenant, granted).await;
        let response = fixture.post_as(&client, "text/plain", &*body).await;
        assert_eq!(response.status, expected, "{transform:?} {}", response.body);
    }
    assert_eq!(fixture.destination.only().text(), "intent");
}

#[tokio::test]
async fn ephemeral_proxies_require_a_private_key() {
    let fixture = Fixture::start().await;
    let vault = &fixture.vault;
    let none = vault.client_with(None);
    let reading = vault
        .client(&fixture.tenant, grants(&[Permission::TokenRead]))
        .await;
    let public = vault
        .holder(
            &fixture.tenant,
            ApplicationKind::Public,
            grants(&[Permission::TokenCreate]),
        )
        .await;
    let session = session(&fixture.vault, &fixture, &public.key).await;
    let cases = [
        (none.clone(), StatusCode::UNAUTHORIZED),
        (
            none.with_key("key_test_us_pvt_unknown"),
            StatusCode::UNAUTHORIZED,
        ),
        (reading, StatusCode::FORBIDDEN),
        (none.with_key(&public.key), StatusCode::FORBIDDEN),
        (none.with_key(&session), StatusCode::FORBIDDEN),
    ];
    for (client, expected) in cases {
        let response = fixture.post_as(&client, "text/plain", "x").await;
        assert_eq!(response.status, expected, "{}", response.body);
        proxy_error(&response);
    }
    assert_eq!(fixture.destination.connections(), 0);
}

/// A session with `token:use` in every container.
async fn session(vault: &TestVault, fixture: &Fixture, public: &str) -> String {
    let page = vault.client_with(Some(public));
    let request = page.request(Method::POST, "/sessions");
    let created = page.send(request).await.body;
    let server = vault
        .client(&fixture.tenant, grants(&[Permission::TokenUse]))
        .await;
    let authorized = json!({"nonce": created["nonce"], "permissions": ["token:use"]});
    let response = server.post("/sessions/authorize", authorized).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    created["session_key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tenant_can_disable_ephemeral_proxies() {
    let fixture = Fixture::start().await;
    let tenant = fixture
        .vault
        .tenant_with(&[("disable_ephemeral_proxy", "true")])
        .await;
    let client = fixture
        .vault
        .client(&tenant, grants(&[Permission::ProxyInvoke]))
        .await;

    let response = fixture.post_as(&client, "text/plain", "x").await;

    assert_eq!(response.status, StatusCode::FORBIDDEN);
    assert!(
        proxy_error(&response)["detail"]
            .to_string()
            .contains("disable_ephemeral_proxy")
    );
    assert_eq!(fixture.destination.connections(), 0);
}

#[tokio::test]
async fn unknown_tokens_are_named() {
    let fixture = Fixture::start().await;
    let id = fixture.token(json!("x")).await;
    let other = fixture.vault.tenant().await;
    let other = fixture
        .vault
        .client(&other, grants(&[Permission::ProxyInvoke]))
        .await;

    let response = fixture
        .post_json(json!([
            format!("{{{{ {id} }}}}"),
            "{{ unknown }}",
            "{{ unknown }}"
        ]))
        .await;
    let foreign = fixture
        .post_as(&other, "text/plain", format!("{{{{ {id} }}}}"))
        .await;

    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let error = proxy_error(&response);
    assert_eq!(error["title"], "Invalid proxy request");
    assert_eq!(error["detail"], "Failed to detokenize some tokens: unknown");
    assert_eq!(error["errors"], json!({}));
    let detail = format!("Failed to detokenize some tokens: {id}");
    assert_eq!(proxy_error(&foreign)["detail"], detail);
    assert_eq!(fixture.destination.connections(), 0);
}

#[tokio::test]
async fn destinations_outside_of_the_allowlist_are_rejected() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;
    let port = fixture.destination.address.port();
    for (url, expected) in [
        (
            format!("https://psp.example.net:{port}"),
            StatusCode::FORBIDDEN,
        ),
        (
            "https://psp.example.com:1".to_owned(),
            StatusCode::FORBIDDEN,
        ),
        (
            format!("http://psp.example.com:{port}"),
            StatusCode::BAD_REQUEST,
        ),
        (format!("https://127.0.0.1:{port}"), StatusCode::BAD_REQUEST),
        (
            format!("https://user@psp.example.com:{port}"),
            StatusCode::BAD_REQUEST,
        ),
        ("".to_owned(), StatusCode::BAD_REQUEST),
    ] {
        let request = fixture.client.request(Method::POST, "/proxy");
        let request = request.header("bt-proxy-url", &url);
        let response = fixture
            .client
            .send(request.body(format!("{{{{ {id} }}}}")))
            .await;
        assert_eq!(response.status, expected, "{url}: {}", response.body);
        proxy_error(&response);
    }
    let response = fixture.client.post("/proxy", json!({})).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let unknown = fixture
        .request(Method::GET, "")
        .header("bt-proxy-key", "unknown");
    let unknown = fixture.client.send(unknown).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    proxy_error(&unknown);
    assert_eq!(fixture.destination.connections(), 0);
}

#[tokio::test]
async fn a_suffix_cannot_leave_the_path_of_the_url() {
    let fixture = Fixture::start().await;
    for suffix in ["/a%2f..%2f..%2fadmin", "/%252e%252e/x", "/a/..;/x"] {
        let request = fixture
            .client
            .request(Method::GET, &format!("/proxy{suffix}"));
        let url = format!("{}/v1", fixture.destination.url());
        let response = fixture
            .client
            .send(request.header("bt-proxy-url", url))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{suffix}");
    }
    assert_eq!(fixture.destination.connections(), 0);
}

/// The security code is sent while it lives, and absent afterwards.
#[tokio::test]
async fn security_codes_are_sent_while_they_live() {
    let fixture = Fixture::start().await;
    let id = fixture.client.post("/tokens", card()).await.id();
    let body = json!({ "cvc": format!("{{{{ {id} | json: '$.cvc' }}}}") });

    let alive = fixture.post_json(body.clone()).await;
    let sql = "update security_code set expires_at = now() - interval '1 second'";
    let database = fixture.vault.database.connect().await;
    database.batch_execute(sql).await.unwrap();
    let expired = fixture.post_json(body).await;

    assert_eq!(
        (alive.status, expired.status),
        (StatusCode::OK, StatusCode::OK)
    );
    let bodies: Vec<Value> = fixture
        .destination
        .received()
        .iter()
        .map(|received| serde_json::from_slice(&received.body).unwrap())
        .collect();
    assert_eq!(bodies, [json!({"cvc": "123"}), json!({"cvc": null})]);
}
