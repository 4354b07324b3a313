//! The security contact of a tenant.

use cloakroom::access;
use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

use super::manager;

/// Covers 14.13.
#[tokio::test]
async fn security_contacts_are_stored() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let path = "/tenants/self/security-contact";

    let none = client.get(path).await;
    let set = client
        .put(path, json!({"email": "security@example.com"}))
        .await;
    let stored = client.get(path).await;

    assert_eq!((none.status, none.body), (StatusCode::OK, json!({})));
    assert_eq!(set.status, StatusCode::OK);
    assert_eq!(set.body, json!({"email": "security@example.com"}));
    assert_eq!(stored.body, set.body);
    for rejected in [json!({}), json!({"email": null}), json!({"email": "x"})] {
        let response = client.put(path, rejected.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{rejected}");
        assert_eq!(response.refused(), ["email"], "{rejected}");
    }
    // No row with a digest changed.
    let examined = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap();
    assert_eq!(examined.altered, Vec::<String>::new());
}
