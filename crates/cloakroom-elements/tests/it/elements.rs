//! Web elements: scripts, frames and their policies. `conformance/elements` tests them in a browser.

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom_testkit::{TestResponse, TestVault, grants};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde_json::json;

const FRAMES: &str = "/web-elements/2.17.0/hosted-elements";

async fn key_of(vault: &TestVault, tenant: &Tenant, kind: ApplicationKind) -> String {
    let permission = match kind {
        ApplicationKind::Management => Permission::KeysCreate,
        _ => Permission::TokenCreate,
    };
    let holder = vault.holder(tenant, kind, grants(&[permission])).await;
    holder.key
}

async fn frame(vault: &TestVault, name: &str, key: &str) -> TestResponse {
    let client = vault.client_with(None);
    client.get(&format!("{FRAMES}/{name}?apiKey={key}")).await
}

fn policy(response: &TestResponse) -> &str {
    let policy = response.headers.get(CONTENT_SECURITY_POLICY);
    policy.and_then(|policy| policy.to_str().ok()).unwrap_or("")
}

/// Covers 30.1.
#[tokio::test]
async fn scripts_are_cached_by_their_content() {
    let vault = TestVault::start().await;
    let client = vault.client_with(None);
    let published = client.get("/web-elements/2.17.0/assets.json").await.body;
    let paths = [
        ("client.js", "/web-elements/2.17.0/client/index.js"),
        (
            "coordinator.js",
            "/web-elements/2.17.0/hosted-elements/coordinator.js",
        ),
        ("field.js", "/web-elements/2.9.1/hosted-elements/field.js"),
    ];
    for (name, path) in paths {
        let version = published[name]["version"].as_str().unwrap();
        let plain = client.get(path).await;
        let exact = client.get(&format!("{path}?v={version}")).await;
        let tag = plain.headers[ETAG].clone();
        let again = client.request(Method::GET, path).header(IF_NONE_MATCH, tag);
        let again = client.send(again).await;

        assert_eq!(
            (plain.status, exact.status),
            (StatusCode::OK, StatusCode::OK),
            "{path}"
        );
        assert_eq!(plain.headers[CACHE_CONTROL], "public, max-age=300");
        assert_eq!(
            exact.headers[CACHE_CONTROL],
            "public, max-age=31536000, immutable"
        );
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(plain.bytes, exact.bytes);
    }
}

/// Covers 30.2.
#[tokio::test]
async fn frames_are_embedded_by_listed_sites_only() {
    let vault = TestVault::start().await;
    let sites = [("elements_sites", "shop.example,www.shop.example")];
    let tenant = vault.tenant_with(&sites).await;
    let public = key_of(&vault, &tenant, ApplicationKind::Public).await;
    let private = key_of(&vault, &tenant, ApplicationKind::Private).await;

    for page in ["field.html", "coordinator.html"] {
        let shown = frame(&vault, page, &public).await;
        let policy = policy(&shown);
        assert_eq!(shown.status, StatusCode::OK, "{page}");
        let listed =
            "frame-ancestors https://shop.example https://www.shop.example http://localhost:*";
        assert!(policy.contains(listed), "{policy}");
        assert!(
            policy.contains("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        assert_eq!(shown.headers["referrer-policy"], "no-referrer");

        let refused = frame(&vault, page, &private).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{page}");
        for unknown in ["", "key_test_us_pub_unknown", "%00"] {
            let refused = frame(&vault, page, unknown).await;
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{page} {unknown}");
        }
    }
}

/// Covers 30.3.
#[tokio::test]
async fn only_the_coordinator_connects_and_only_to_listed_hosts() {
    let vault = TestVault::start().await;
    let hosts = [("elements_hosts", "api.shop.example")];
    let tenant = vault.tenant_with(&hosts).await;
    let public = key_of(&vault, &tenant, ApplicationKind::Public).await;

    let coordinator = frame(&vault, "coordinator.html", &public).await;
    let field = frame(&vault, "field.html", &public).await;

    let connect = "connect-src 'self' https://api.shop.example;";
    assert!(
        policy(&coordinator).contains(connect),
        "{}",
        policy(&coordinator)
    );
    let html = String::from_utf8(coordinator.bytes).unwrap();
    assert!(html.contains(r#"<meta name="elements-hosts" content="api.shop.example">"#));
    assert!(
        policy(&field).contains("connect-src 'none';"),
        "{}",
        policy(&field)
    );
}

/// Covers 30.4.
#[tokio::test]
async fn public_keys_of_client_encryption_are_readable_in_their_tenant_only() {
    let vault = TestVault::start().await;
    let (tenant, other) = (vault.tenant().await, vault.tenant().await);
    let manager = key_of(&vault, &tenant, ApplicationKind::Management).await;
    let created = vault
        .client_with(Some(&manager))
        .post("/keys", json!({}))
        .await;
    let id = created.body["id"].as_str().unwrap();
    let read = async |tenant: &Tenant, id: &str| {
        let public = key_of(&vault, tenant, ApplicationKind::Public).await;
        frame(&vault, &format!("keys/{id}"), &public).await
    };

    let found = read(&tenant, id).await;
    let foreign = read(&other, id).await;
    let malformed = read(&tenant, "x").await;

    assert_eq!(
        found.body,
        json!({"public_key_pem": created.body["public_key_pem"]})
    );
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    assert_eq!(malformed.status, StatusCode::NOT_FOUND);
}
