//! Updating applications, and the order of rules.

use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

use super::{
    create_application, create_status, ids_of, manager, new_application, new_application_with, rule,
};

/// Covers 13.13, 13.14.
#[tokio::test]
async fn an_update_replaces_grants_immediately() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let own = manager.get("/applications/key").await.id();
    let rules = json!([rule(1, "/a/", "reveal", &["token:read"])]);
    let application =
        create_application(&manager, new_application_with(json!({"rules": rules}))).await;
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::CREATED
    );

    let change = json!({"name": "Reader", "permissions": ["token:read"], "type": "management",
        "rules": null, "expires_at": "2020-01-01"});
    let updated = manager.put(&application.path, change).await;

    assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::FORBIDDEN
    );
    assert_eq!(updated.body["name"], "Reader");
    assert_eq!(updated.body["type"], "private");
    assert_eq!(updated.body["permissions"], json!(["token:read"]));
    assert_eq!(updated.body["rules"], json!([]));
    assert_eq!(updated.body["modified_by"], own);
    assert!(updated.body["modified_at"].as_str() > updated.body["created_at"].as_str());
    assert_eq!(updated.body.get("expires_at"), None);
    assert_eq!(
        ids_of(updated.body["keys"].as_array().unwrap()),
        [&application.key_id]
    );
    assert_eq!(manager.get(&application.path).await.body, updated.body);

    let rules = json!([rule(1, "/", "mask", &["token:create"])]);
    let rules = json!({"name": "Ruled", "rules": rules});
    assert_eq!(
        manager.put(&application.path, rules).await.status,
        StatusCode::OK
    );
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::CREATED
    );
}

/// Covers 13.13.
#[tokio::test]
async fn invalid_updates_are_rejected_and_change_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;
    let before = manager.get(&application.path).await.body;

    // The application type limits the permissions.
    for (change, expected) in [
        (
            json!({"name": "x", "permissions": ["log:read"]}),
            "permissions",
        ),
        (json!({"name": "x"}), "permissions"),
        (json!({"permissions": ["token:read"]}), "name"),
        (
            json!({"name": "x", "rules": [{"priority": 0}]}),
            "rules[0].container",
        ),
    ] {
        let rejected = manager.put(&application.path, change.clone()).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{change}");
        assert_eq!(rejected.refused()[0], expected, "{change}");
    }
    assert_eq!(manager.get(&application.path).await.body, before);
}

/// Covers 13.9.
#[tokio::test]
async fn rules_are_applied_in_order_of_priority() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let rules = json!([
        rule(4, "/users/", "mask", &["token:read"]),
        rule(1, "/", "mask", &["token:create"]),
        rule(3, "/users/employees/", "reveal", &["token:read"]),
        rule(2, "/Users/Government/", "redact", &["token:read"]),
    ]);
    let application = create_application(
        &manager,
        new_application_with(json!({"permissions": [], "rules": rules})),
    )
    .await;
    let client = vault.client_with(Some(&application.key));

    let shown = manager.get(&application.path).await.body["rules"].clone();
    let priorities: Vec<_> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["priority"])
        .collect();
    assert_eq!(priorities, [1, 2, 3, 4]);
    let cases = [
        ("/users/government/", Some(json!(null))),
        ("/users/employees/hq/", Some(json!("alpha"))),
        ("/users/", Some(json!("XXXha"))),
        ("/bounty-hunters/", None),
    ];
    for (container, expected) in cases {
        let new = json!({"type": "token", "data": "alpha", "containers": [container],
            "mask": "{{ data | reveal_last: 2 }}"});
        let id = client.post("/tokens", new).await.id();
        let read = client.get(&format!("/tokens/{id}")).await;
        match expected {
            Some(data) => assert_eq!(read.body.get("data").unwrap_or(&json!(null)), &data),
            None => assert_eq!(read.status, StatusCode::FORBIDDEN),
        }
    }
    assert_eq!(client.get("/v2/tokens").await.items().len(), 3);
}
