//! Reading and changing the settings of a tenant.

use std::time::Duration;

use cloakroom::access::{self, ApplicationKind, Transform};
use cloakroom::members::Role;
use cloakroom::tenants::{self, TenantChanges};
use cloakroom_testkit::{TestVault, everything};
use http::{Method, StatusCode};
use serde_json::json;

use super::{QUOTAS, SELF, add_member, manager, until};

/// Covers 14.1, 14.2.
#[tokio::test]
async fn get_returns_the_tenant() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = manager(&vault, &tenant).await;

    let response = client.get(SELF).await;

    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.body["id"], tenant.id.uuid.to_string());
    insta::assert_snapshot!(response.told(&["id", "created_at"]), @r#"
    {
      "id": "[id]",
      "name": "A tenant",
      "type": "test",
      "settings": {
        "fingerprint_tokens": "true",
        "disable_ephemeral_proxy": "false",
        "deduplicate_tokens": "true",
        "token_deduplication_behavior": "read_existing"
      },
      "created_at": "[created_at]"
    }
    "#);
}

/// Covers 14.2.
#[tokio::test]
async fn the_owner_is_returned_by_user_id() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add_member(&vault, &tenant, "owner@example.com", Role::Owner).await;

    let response = client.get(SELF).await;

    assert_eq!(response.body["owner_id"], owner.user.id.to_string());
}

/// Covers 14.3, 14.4.
#[tokio::test]
async fn settings_are_merged() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let first = json!({"name": "Shop", "settings": {"deduplicate_tokens": "true"}});
    let first = client.put(SELF, first).await;
    let second = json!({"name": "Shop 2", "settings": {
        "token_deduplication_behavior": "update_existing", "fingerprint_tokens": null
    }});
    client.put(SELF, second).await;
    let renamed = client
        .put(SELF, json!({"name": "Shop 3", "color": "red"}))
        .await;

    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    assert_eq!(first.body["settings"]["deduplicate_tokens"], "true");
    assert!(first.body["modified_at"].is_string() && first.body["modified_by"].is_string());
    assert_eq!(renamed.body["name"], "Shop 3");
    let stored = client.get(SELF).await.body;
    assert_eq!(stored, renamed.body);
    assert_eq!(
        stored["settings"],
        json!({
            "fingerprint_tokens": "true",
            "disable_ephemeral_proxy": "false",
            "deduplicate_tokens": "true",
            "token_deduplication_behavior": "update_existing",
        })
    );
}

/// Covers 14.5.
#[tokio::test]
async fn invalid_changes_are_rejected_by_attribute() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let before = client.get(SELF).await.body;

    let cases = [
        (json!({}), "name"),
        (json!({"name": null}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "a\nb"}), "name"),
        (json!({"name": "n".repeat(201)}), "name"),
        (json!({"name": "4242 4242 4242 4242"}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"name": "n", "settings": []}), "settings"),
        (
            json!({"name": "n", "settings": {"deduplicate_tokens": true}}),
            "settings.deduplicate_tokens",
        ),
        (
            json!({"name": "n", "settings": {"deduplicate_tokens": "yes"}}),
            "settings.deduplicate_tokens",
        ),
        (
            json!({"name": "n", "settings": {"token_deduplication_behavior": "keep"}}),
            "settings.token_deduplication_behavior",
        ),
        (
            json!({"name": "n", "settings": {"unknown_one": "true"}}),
            "settings.unknown_one",
        ),
        (
            json!({"name": "", "settings": {"unknown_one": "true", "deduplicate_tokens": "true"}}),
            "name settings.unknown_one",
        ),
    ];
    for (change, invalid) in cases {
        let response = client.put(SELF, change.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{change}");
        assert_eq!(response.refused().join(" "), invalid, "{change}");
    }

    assert_eq!(client.get(SELF).await.body, before);
}

/// Covers 14.6.
#[tokio::test]
async fn settings_apply_at_once_and_on_all_nodes_within_five_seconds() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let new = || json!({"type": "token", "data": "the same"});
    let deduplicates = async |node: &TestVault| {
        let tokens = node.client_with(Some(&holder.key));
        let (one, two) = (
            tokens.post("/tokens", new()).await,
            tokens.post("/tokens", new()).await,
        );
        one.id() == two.id()
    };
    assert!(!deduplicates(&vault).await && !deduplicates(&other).await);

    let change = json!({"name": "Shop", "settings": {"deduplicate_tokens": "true"}});
    let changed = client.put(SELF, change).await;

    assert_eq!(changed.status, StatusCode::OK);
    assert!(deduplicates(&vault).await, "not on this node");
    let lag = until(StatusCode::OK, async || match deduplicates(&other).await {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    })
    .await;
    assert!(lag <= Duration::from_secs(5), "{lag:?}");
}

/// Covers 14.7.
#[tokio::test]
async fn updates_keep_the_row_digest_valid_and_never_repair_an_altered_row() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let change = json!({"name": "Shop", "settings": {"deduplicate_tokens": "true"}});
    client.put(SELF, change.clone()).await;
    client.put(QUOTAS, json!({"tokenize_limit": 7})).await;

    let intact = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap();
    // Caches the key, so that reads get as far as the tenant row.
    assert_eq!(client.get(SELF).await.status, StatusCode::OK);
    let database = vault.database.connect().await;
    let tamper = "update tenant set quotas = '{\"tokenize_limit\":1000}'";
    database.execute(tamper, &[]).await.unwrap();
    let read = client.get(SELF).await;
    // Writes authenticate against the database, and reject a key whose row fails verification.
    let writes = [
        client.put(SELF, change).await,
        client.put(QUOTAS, json!({"detokenize_limit": 7})).await,
        client.delete(SELF).await,
    ];

    assert_eq!(intact.altered, Vec::<String>::new());
    assert_eq!(read.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(read.body["code"], "altered_row");
    for write in writes {
        assert_eq!(write.status, StatusCode::UNAUTHORIZED, "{}", write.body);
    }
    let altered = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap()
        .altered;
    assert_eq!(altered.len(), 1, "{altered:?}");
}

/// Covers 14.3.
#[tokio::test]
async fn concurrent_changes_are_all_applied() {
    let vault = TestVault::start_with_long_timeouts().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let names = ["fingerprint_tokens", "deduplicate_tokens"];

    for round in 0..10 {
        let text = if round % 2 == 0 { "false" } else { "true" };
        let change = |name: &str| client.put(SELF, json!({"name": "n", "settings": {name: text}}));
        let quota = json!({"tokenize_limit": round + 1});
        let (one, two, three) = tokio::join!(
            change(names[0]),
            change(names[1]),
            client.put(QUOTAS, quota)
        );

        for response in [one, two, three] {
            assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        }
        let stored = client.get(SELF).await.body;
        for name in names {
            assert_eq!(stored["settings"][name], text, "{round} {name}");
        }
        let quotas = client.get(QUOTAS).await.body;
        assert_eq!(quotas["tokenize_limit"], round + 1);
    }
}

/// Covers 14.14.
#[tokio::test]
async fn single_sign_on_endpoints_return_gone() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let path = "/tenants/self/connections";

    for response in [
        client
            .post(path, json!({"strategy": "x", "options": {}}))
            .await,
        client.delete(path).await,
    ] {
        assert_eq!(response.status, StatusCode::GONE);
        let detail = response.body["detail"].as_str().unwrap();
        assert!(
            detail.contains("Sign-on is not part of this system"),
            "{detail}"
        );
    }
}

/// Covers 14.19.
#[tokio::test]
async fn tenant_operations_are_logged() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    client.get(SELF).await;
    client.put(SELF, json!({"name": "n"})).await;
    client.put(SELF, json!({"name": ""})).await;
    client.get(QUOTAS).await;
    client.put(QUOTAS, json!({"tokenize_limit": 9})).await;
    let contact = "/tenants/self/security-contact";
    client.put(contact, json!({"email": "a@b"})).await;
    client.get(contact).await;
    let changes = TenantChanges {
        name: Some("by command".to_owned()),
        ..TenantChanges::default()
    };
    tenants::update_as_operator(&vault.vault, tenant.id, &changes)
        .await
        .unwrap();

    let logs = client.get("/logs?entity_type=tenant").await;
    let operations: Vec<String> = logs
        .items()
        .iter()
        .map(|record| {
            assert_eq!(record["entity_id"], tenant.id.uuid.to_string());
            let word = |name: &str| record[name].as_str().unwrap().to_owned();
            format!("{} {}", word("actor_type"), word("operation"))
        })
        .collect();
    let mut sorted = operations.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "application read",
            "application read",
            "application read",
            "application update",
            "application update",
            "application update",
            "system create",
            "system update",
        ],
        "{operations:?}"
    );
}

/// Covers 14.20.
#[tokio::test]
async fn bodies_may_have_any_json_media_type() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let send = async |media: &str, body: &'static str| {
        let request = client
            .request(Method::PUT, SELF)
            .header("content-type", media);
        client.send(request.body(body)).await.status
    };
    let good = r#"{"name": "n"}"#;

    assert_eq!(
        send("application/json-patch+json", good).await,
        StatusCode::OK
    );
    assert_eq!(
        send("application/json; charset=utf-8", good).await,
        StatusCode::OK
    );
    assert_eq!(
        send("text/plain", good).await,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    assert_eq!(send("application/json", "{").await, StatusCode::BAD_REQUEST);
    assert_eq!(
        send("application/json", "[]").await,
        StatusCode::BAD_REQUEST
    );
}
