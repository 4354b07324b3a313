//! Sessions cannot exceed the grants of the authorizing key.

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{Client, TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{FORBIDDEN, reveal_everything};

/// Creates a session with the public key and authorizes it with the key of `server`; returns the status, the
/// attributes that a 400 names, and a client with the session key.
async fn authorize(
    browser: &Client,
    server: &Client,
    mut body: Value,
) -> (StatusCode, Vec<String>, Client) {
    let session = browser.post("/sessions", json!({})).await;
    assert_eq!(session.status, StatusCode::CREATED, "{}", session.body);
    body["nonce"] = session.body["nonce"].clone();
    let response = server.post("/sessions/authorize", body).await;
    let rejected = match response.status {
        StatusCode::BAD_REQUEST => response.refused().into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let key = session.body["session_key"].as_str().unwrap();
    (response.status, rejected, browser.with_key(key))
}

/// F3: a key authorized sessions with more permissions than its own.
///
/// Covers 17.11.
#[tokio::test]
async fn a_private_key_cannot_authorize_a_session_beyond_its_own_grants() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let creator = vault.client(&tenant, everything(Transform::Reveal)).await;
    let token = json!({"type": "token", "data": "secret", "containers": ["/a/"]});
    let token = creator.post("/tokens", token).await.id();
    let public = grants(&[Permission::TokenCreate]);
    let browser = vault.holder(&tenant, ApplicationKind::Public, public).await;
    let browser = vault.client_with(Some(&browser.key));
    let formulas = grants(&[Permission::ConnectionFormulas]);
    let limited = vault.client(&tenant, formulas).await;

    let body = json!({"rules": reveal_everything()});
    let (status, rejected, session) = authorize(&browser, &limited, body.clone()).await;

    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected, ["rules[0].permissions"]);
    assert_eq!(session.get("/v2/tokens").await.status, FORBIDDEN);
    let (status, _, session) = authorize(&browser, &creator, body).await;
    assert_eq!(status, StatusCode::OK);
    let read = session.get(&format!("/tokens/{token}")).await;
    assert_eq!(read.body["data"], "secret");
}

/// Grants for a session, and whether they are allowed for a key that reads redacted in `/a/b/` and masked in the rest
/// of `/a/`, searches revealed in `/a/`, and deletes everywhere.
fn session_grants() -> Vec<(Value, bool)> {
    let ruled = |scope: Value, transform: &str, permission: &str| {
        let mut rule = json!({"description": "r", "priority": 1, "transform": transform,
            "permissions": [permission]});
        let scope = scope.as_object().unwrap().clone();
        rule.as_object_mut().unwrap().extend(scope);
        json!({"rules": [rule]})
    };
    let container = |path: &str| json!({"container": path});
    let condition = |attribute: &str, operator: &str, value: &str| {
        json!({"conditions":
            [{"attribute": attribute, "operator": operator, "value": value}]})
    };
    vec![
        (ruled(container("/a/"), "mask", "token:read"), false),
        (ruled(container("/a/"), "redact", "token:read"), true),
        (ruled(container("/a/c/"), "mask", "token:read"), true),
        (ruled(container("/a/c/"), "reveal", "token:read"), false),
        (ruled(container("/a/b/c/"), "mask", "token:read"), false),
        (ruled(container("/"), "redact", "token:read"), false),
        (ruled(container("/ab/"), "redact", "token:read"), false),
        (ruled(container("/a/"), "reveal", "token:search"), true),
        (ruled(container("/a/"), "redact", "token:update"), false),
        (ruled(container("/"), "redact", "token:delete"), true),
        (ruled(container("/"), "mask", "token:delete"), false),
        (
            ruled(condition("id", "equals", "x"), "redact", "token:read"),
            false,
        ),
        (
            ruled(
                condition("container", "starts_with", "/a"),
                "redact",
                "token:read",
            ),
            false,
        ),
        (
            ruled(
                condition("container", "starts_with", "/a/c"),
                "redact",
                "token:read",
            ),
            true,
        ),
        (
            ruled(
                condition("container", "starts_with", "/a/c"),
                "mask",
                "token:read",
            ),
            false,
        ),
        (
            ruled(
                condition("container", "equals", "/a/c/"),
                "mask",
                "token:read",
            ),
            true,
        ),
        (json!({"permissions": ["token:read"]}), false),
        (json!({"permissions": ["token:delete"]}), true),
        (json!({"permissions": ["token:create"]}), false),
        (json!({"permissions": ["token-intent:create"]}), false),
    ]
}

/// F3: a session sees at most what the authorizing key sees, for all priorities, containers and conditions.
#[tokio::test]
async fn a_session_never_sees_more_than_the_authorizing_key() {
    use Permission::{TokenRead, TokenSearch};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let public = grants(&[Permission::TokenCreate]);
    let browser = vault.holder(&tenant, ApplicationKind::Public, public).await;
    let browser = vault.client_with(Some(&browser.key));
    // Reads are redacted in `/a/b/` and masked in the rest of `/a/`; searches in `/a/` reveal.
    let own = Grants {
        rules: vec![
            rule(1, "/a/b/", Transform::Redact, &[TokenRead]),
            rule(2, "/a/", Transform::Mask, &[TokenRead]),
            rule(3, "/a/", Transform::Reveal, &[TokenRead, TokenSearch]),
        ],
        ..grants(&[Permission::TokenDelete])
    };
    let server = vault.client(&tenant, own).await;
    for (body, is_granted) in session_grants() {
        let (status, ..) = authorize(&browser, &server, body.clone()).await;
        let expected = match is_granted {
            true => StatusCode::OK,
            false => StatusCode::BAD_REQUEST,
        };
        assert_eq!(status, expected, "{body}");
    }
}
