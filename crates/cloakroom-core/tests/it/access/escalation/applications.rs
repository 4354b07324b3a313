//! Applications cannot be granted more than the management key holds.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{TestDatabase, TestVault, everything, grants, held_by};
use http::StatusCode;
use serde_json::{Value, json};

use super::{FORBIDDEN, SELF, administrator, management, reveal_everything};

/// F12: granting permissions to applications over HTTP.
///
/// Covers 13.29, 13.30.
#[tokio::test]
async fn a_management_key_grants_only_what_it_holds() {
    use Permission::{ApplicationCreate, ApplicationRead, ApplicationUpdate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let private = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let held = [ApplicationCreate, ApplicationRead, ApplicationUpdate];
    let own = management(&vault, &tenant, &held).await;
    let client = vault.client_with(Some(&own.key));
    let new = |kind: &str, permissions: Value, rules: Value| {
        json!({"name": "n", "type": kind,
        "permissions": permissions, "rules": rules})
    };
    let reading = new("management", json!(["application:read"]), json!([]));
    let beyond = [
        new(
            "management",
            json!(["application:read", "tenant:delete"]),
            json!([]),
        ),
        new("private", json!(["token:create"]), json!([])),
        new("private", json!([]), reveal_everything()),
        new("public", json!(["token:create"]), json!([])),
    ];
    let private_path = format!("/applications/{}", private.application);
    let own_path = format!("/applications/{}", own.application);

    for body in &beyond {
        let response = client.post("/applications", body.clone()).await;
        assert_eq!(response.status, FORBIDDEN, "{body}");
        let detail = response.body["detail"].as_str().unwrap();
        assert!(detail.contains("application:grant"), "{detail}");
    }
    let key = client
        .post(&format!("{private_path}/keys"), json!({}))
        .await;
    assert_eq!(
        key.status, FORBIDDEN,
        "a key for an application with more permissions"
    );
    let narrowed = new("private", json!(["token:read"]), json!([]));
    let response = client.put(&private_path, narrowed).await;
    assert_eq!(
        response.status, FORBIDDEN,
        "an update of an application with more permissions"
    );
    let response = client.put(&own_path, beyond[0].clone()).await;
    assert_eq!(response.status, FORBIDDEN, "promoting itself");
    let stronger = [ApplicationRead, Permission::TenantRead];
    let stronger = management(&vault, &tenant, &stronger).await;
    let path = format!("/applications/{}", stronger.application);
    let response = client.put(&path, reading.clone()).await;
    assert_eq!(
        response.status, FORBIDDEN,
        "narrowing an application with more permissions"
    );

    let created = client.post("/applications", reading.clone()).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/applications/{}", created.id());
    let response = client.put(&path, beyond[0].clone()).await;
    assert_eq!(response.status, FORBIDDEN, "promoting another application");
    assert_eq!(client.put(&path, reading).await.status, StatusCode::OK);
    let key = client.post(&format!("{path}/keys"), json!({})).await;
    assert_eq!(key.status, StatusCode::CREATED);
    let key = client.post(&format!("{own_path}/keys"), json!({})).await;
    assert_eq!(key.status, StatusCode::CREATED);
}

/// F12: the flow of the official clients, from the first management key.
///
/// Covers 13.29.
#[tokio::test]
async fn an_administrator_grants_any_permission() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = administrator(&vault, &tenant).await;
    let new = json!({"name": "n", "type": "private", "rules": reveal_everything()});

    let created = client.post("/applications", new.clone()).await;

    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/applications/{}", created.id());
    assert_eq!(client.put(&path, new).await.status, StatusCode::OK);
    let key = client.post(&format!("{path}/keys"), json!({})).await;
    assert_eq!(key.status, StatusCode::CREATED);
}

/// Covers 13.30.
#[tokio::test]
async fn the_unrestricted_grants_setting_allows_any_grant() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.tenants.unrestricted_grants = true;
    })
    .await;
    let tenant = vault.tenant().await;
    let own = management(&vault, &tenant, &[Permission::ApplicationCreate]).await;
    let client = vault.client_with(Some(&own.key));

    let new = json!({"name": "n", "type": "private", "rules": reveal_everything()});

    let created = client.post("/applications", new).await;
    assert_eq!(created.status, StatusCode::CREATED);
}

/// A node that still has a key cached after it was revoked through another node grants no lasting permissions with it.
///
/// Covers 13.32.
#[tokio::test]
async fn a_revoked_key_grants_nothing_on_any_node() {
    let vault = TestVault::start().await;
    let second = vault.second_node().await;
    let tenant = vault.tenant().await;
    let administrator = administrator(&vault, &tenant).await;
    let all: Vec<Permission> = held_by(ApplicationKind::Management).collect();
    let revoked = management(&vault, &tenant, &all).await;
    let revoked_client = vault.client_with(Some(&revoked.key)).at(&second.base_url);
    let private = ApplicationKind::Private;
    let server = vault.holder(&tenant, private, everything(Transform::Reveal));
    let server = server.await;
    let server_client = vault.client_with(Some(&server.key)).at(&second.base_url);
    let public = grants(&[Permission::TokenCreate]);
    let browser = vault.holder(&tenant, ApplicationKind::Public, public).await;
    let browser = vault.client_with(Some(&browser.key));
    let status = revoked_client.get(SELF).await.status;
    assert_eq!(status, StatusCode::OK, "the second node has cached the key");
    assert_eq!(server_client.get("/v2/tokens").await.status, StatusCode::OK);

    for application in [revoked.application, server.application] {
        let path = format!("/applications/{application}");
        let deleted = administrator.delete(&path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }

    let own = format!("/applications/{}", revoked.application);
    let new = json!({"name": "n", "type": "management", "permissions": ["tenant:read"]});
    let session = browser.post("/sessions", json!({})).await;
    let authorization = json!({"nonce": session.body["nonce"], "rules": reveal_everything()});
    let responses = [
        revoked_client.post("/applications", new.clone()).await,
        revoked_client.put(&own, new).await,
        revoked_client.post(&format!("{own}/keys"), json!({})).await,
        revoked_client.delete(SELF).await,
        server_client
            .post("/sessions/authorize", authorization)
            .await,
    ];
    for response in responses {
        assert_eq!(
            response.status,
            StatusCode::UNAUTHORIZED,
            "{}",
            response.body
        );
    }
}
