//! Operator limits and tenant deletion.

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{TestVault, everything};
use http::StatusCode;
use serde_json::json;

use super::{FORBIDDEN, SELF, administrator, management};

const QUOTAS: &str = "/tenants/self/quotas";

/// F11: a tenant raised limits set by the operator.
///
/// Covers 14.21.
#[tokio::test]
async fn a_tenant_cannot_raise_the_operators_limits() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let permissions = [Permission::TenantRead, Permission::TenantUpdate];
    let client = management(&vault, &tenant, &permissions).await;
    let client = vault.client_with(Some(&client.key));
    let before = client.get(QUOTAS).await.body;

    let cases = [
        ("rate_limit", json!("unlimited"), json!("1x")),
        ("rate_limit", json!("2x"), json!("default")),
        ("card_velocity_limit", json!(11), json!(3)),
        ("cvc_retention", json!(3_601), json!(1_800)),
        ("log_retention", json!(86_399), json!(172_800)),
    ];
    for (name, beyond, within) in cases {
        let response = client.put(QUOTAS, json!({name: beyond})).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{name} {beyond}");
        assert_eq!(response.refused(), [name]);
        assert_eq!(client.get(QUOTAS).await.body, before, "{name} {beyond}");
        let response = client.put(QUOTAS, json!({name: within})).await;
        assert_eq!(response.status, StatusCode::OK, "{name} {within}");
        assert_eq!(response.body[name], within);
        let response = client.put(QUOTAS, json!({name: null})).await;
        assert_eq!(
            response.body, before,
            "{name} reset to the operator's default"
        );
    }
}

/// F16: a single key deleted a tenant.
///
/// Covers 14.17.
#[tokio::test]
async fn one_key_alone_does_not_delete_a_tenant() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let permissions = [Permission::TenantRead, Permission::TenantDelete];
    let client = management(&vault, &tenant, &permissions).await;
    let client = vault.client_with(Some(&client.key));
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let new = json!({"type": "token", "data": "secret"});
    let token = tokens.post("/tokens", new).await.id();

    let deleted = client.delete(SELF).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let shown = client.get(SELF).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert!(
        shown.body["deletion"]["requested_at"].is_string(),
        "{}",
        shown.body
    );
    let read = tokens.get(&format!("/tokens/{token}")).await;
    assert_eq!(read.body["data"], "secret");
}

/// Deleting a tenant takes two applications, and the first cannot create the second.
///
/// Covers 13.31.
#[tokio::test]
async fn tenant_deletion_is_granted_by_administrators_only() {
    use Permission::{ApplicationCreate, ApplicationUpdate, TenantDelete};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let held = [ApplicationCreate, ApplicationUpdate, TenantDelete];
    let own = management(&vault, &tenant, &held).await;
    let client = vault.client_with(Some(&own.key));
    let new = json!({"name": "n", "type": "management", "permissions": ["tenant:delete"]});

    assert_eq!(client.delete(SELF).await.status, StatusCode::NO_CONTENT);
    let second = client.post("/applications", new.clone()).await;
    assert_eq!(second.status, FORBIDDEN, "{}", second.body);

    let administrator = administrator(&vault, &tenant).await;
    let second = administrator.post("/applications", new).await;
    assert_eq!(second.status, StatusCode::CREATED, "{}", second.body);
}
