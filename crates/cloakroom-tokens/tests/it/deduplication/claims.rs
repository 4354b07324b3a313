//! Expired, deleted and changed tokens release their claims.

use std::collections::BTreeSet;

use cloakroom::access::Transform;
use cloakroom_testkit::{TestVault, everything};
use http::StatusCode;
use serde_json::json;

use super::{counts, create, deduplicated, is_duplicate};

/// Sets the expiry of every token that has one to the current time of the database.
async fn expire_all(vault: &TestVault) {
    let sql = "update token set expires_at = now() where expires_at is not null";
    vault
        .database
        .connect()
        .await
        .execute(sql, &[])
        .await
        .unwrap();
}

/// Covers 7.14.
#[tokio::test]
async fn expired_tokens_are_never_duplicates_and_never_conflict() {
    let vault = TestVault::start().await;
    for behavior in ["read_existing", "update_existing"] {
        let tenant = vault
            .tenant_with(&[("token_deduplication_behavior", behavior)])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let data = json!("x");

        // The expired token still holds the claim, because no sweep has run.
        let expired = create(
            &client,
            deduplicated(&data, json!({"id": "the id", "expires_at": "2040-01-01"})),
        )
        .await;
        expire_all(&vault).await;
        let fresh = create(
            &client,
            deduplicated(&data, json!({"expires_at": "2040-01-01"})),
        )
        .await;
        assert!(!is_duplicate(&fresh), "{behavior}");
        assert_ne!(fresh.id(), expired.id());

        // Again, this time with the id of the expired token.
        expire_all(&vault).await;
        let third = create(&client, deduplicated(&data, json!({"id": fresh.id()}))).await;
        assert_eq!(
            (is_duplicate(&third), third.id()),
            (false, fresh.id()),
            "{behavior}"
        );
        let duplicate = create(&client, deduplicated(&data, json!({}))).await;
        assert_eq!(
            (is_duplicate(&duplicate), duplicate.id()),
            (true, third.id()),
            "{behavior}"
        );
    }
    assert_eq!(counts(&vault).await, (2, 2));
}

/// Covers 7.14, 8.9.
#[tokio::test]
async fn an_expired_claim_does_not_block_an_update() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create(
        &client,
        deduplicated(&json!("x"), json!({"expires_at": "2040-01-01"})),
    )
    .await;
    let other = create(&client, deduplicated(&json!("y"), json!({}))).await;
    expire_all(&vault).await;

    let patch = json!({"data": "x", "deduplicate_token": true});
    let updated = client
        .patch(&format!("/tokens/{}", other.id()), patch)
        .await;

    assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
    assert_eq!(
        (updated.id(), &updated.body["data"]),
        (other.id(), &json!("x"))
    );
    let duplicate = create(&client, deduplicated(&json!("x"), json!({}))).await;
    assert_eq!(duplicate.id(), other.id());
    assert_eq!(counts(&vault).await, (1, 1));
}

/// Covers 7.15.
#[tokio::test]
async fn deleting_or_changing_a_token_releases_its_claim() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let data = json!({"a": 1});
    let changes = [
        None,
        Some(json!({"data": {"a": 2}})),
        Some(json!({"containers": ["/elsewhere/"]})),
        Some(json!({"fingerprint_expression": "{{ data.a | append: 'x' }}"})),
    ];
    let mut ids = BTreeSet::new();
    for change in &changes {
        let token = create(&client, deduplicated(&data, json!({}))).await;
        assert!(!is_duplicate(&token), "{change:?}");
        assert!(ids.insert(token.id()));
        let path = format!("/tokens/{}", token.id());
        // An update without deduplication releases the claim as well.
        let status = match change {
            None => client.delete(&path).await.status,
            Some(patch) => client.patch(&path, patch.clone()).await.status,
        };
        assert!(status.is_success(), "{change:?}");
    }
    let last = create(&client, deduplicated(&data, json!({}))).await;
    assert!(!is_duplicate(&last));
    assert_eq!(counts(&vault).await, (4, 1));

    // An update with deduplication claims the new fingerprint.
    let patch = json!({"data": {"a": 3}, "deduplicate_token": true});
    client.patch(&format!("/tokens/{}", last.id()), patch).await;
    let duplicate = create(&client, deduplicated(&json!({"a": 3}), json!({}))).await;
    assert_eq!(duplicate.id(), last.id());
    assert_eq!(counts(&vault).await, (4, 1));
}
