//! Which existing token a create or update finds.

use std::collections::BTreeSet;

use cloakroom::access::Transform;
use cloakroom_testkit::{TestVault, everything};
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::json;

use super::{counts, create, deduplicated, is_duplicate};

/// Covers 7.1, 3.11.
#[tokio::test]
async fn the_request_overrides_the_tenant_setting() {
    let vault = TestVault::start().await;

    for setting in [false, true] {
        let tenant = vault
            .tenant_with(&[("deduplicate_tokens", &setting.to_string())])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let cases = [
            (json!({}), setting),
            (json!({"deduplicate_token": null}), setting),
            (json!({"deduplicate_token": true}), true),
            (json!({"deduplicate_token": false}), false),
        ];
        create(&client, json!({"type": "token", "data": "x"})).await;
        for (mut new, expected) in cases {
            new["type"] = json!("token");
            new["data"] = json!("x");
            let response = create(&client, new.clone()).await;
            assert_eq!(is_duplicate(&response), expected, "{setting} {new}");
        }
    }
}

/// Covers 7.2, 7.7, 2.19.
#[tokio::test]
async fn deduplication_applies_to_create_tokenize_and_update() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let first = create(&client, deduplicated(&json!("x"), json!({}))).await;
    let other = create(&client, deduplicated(&json!("y"), json!({}))).await;

    let created = client
        .post("/tokens", deduplicated(&json!("x"), json!({})))
        .await;
    let tokenized = client
        .post("/tokenize", json!([deduplicated(&json!("x"), json!({}))]))
        .await;
    let patch = json!({"data": "x", "deduplicate_token": true});
    let updated = client
        .patch(&format!("/tokens/{}", other.id()), patch)
        .await;

    let extras = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
    assert_eq!(first.body["_extras"], json!({"deduplicated": false}));
    assert_eq!(
        (created.status, created.id()),
        (StatusCode::CREATED, first.id())
    );
    let location = format!("{}/tokens/{}", vault.base_url, first.id());
    assert_eq!(created.header("location"), location);
    assert_eq!(
        (tokenized.status, &tokenized.body[0]["id"]),
        (StatusCode::OK, &first.body["id"])
    );
    assert_eq!((updated.status, updated.id()), (StatusCode::OK, first.id()));
    for actual in [
        &created.body["_extras"],
        &tokenized.body[0]["_extras"],
        &updated.body["_extras"],
    ] {
        assert_eq!(*actual, extras);
    }
    let unchanged = client.get(&format!("/tokens/{}", other.id())).await;
    assert_eq!(unchanged.body["data"], "y");
    assert_eq!(unchanged.body.get("modified_at"), None);
}

/// Covers 7.3.
#[tokio::test]
async fn duplicates_match_in_tenant_type_fingerprint_and_container() {
    let vault = TestVault::start().await;
    let (client, foreign) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let number = json!("4242424242424242");
    let own = create(
        &client,
        deduplicated(&number, json!({"containers": ["/a/"]})),
    )
    .await;

    let differing = [
        (&client, json!({"containers": ["/a/b/"]})),
        (&client, json!({"containers": ["/"]})),
        (&client, json!({"containers": ["/b/"]})),
        (
            &client,
            json!({"containers": ["/a/"], "type": "card_number"}),
        ),
        (
            &client,
            json!({"containers": ["/a/"], "data": "4111111111111111"}),
        ),
        (
            &client,
            json!({"containers": ["/a/"], "fingerprint_expression": "{{ data | last4 }}"}),
        ),
        (&foreign, json!({"containers": ["/a/"]})),
    ];
    let mut ids = BTreeSet::from([own.id()]);
    for (client, more) in differing {
        let response = create(client, deduplicated(&number, more.clone())).await;
        assert!(!is_duplicate(&response), "{more}");
        assert!(ids.insert(response.id()), "{more}");
    }
    let same = [
        json!({"containers": ["/A/"]}),
        json!({"containers": ["/a/"], "metadata": {"k": "v"}, "mask": "x", "expires_at": "2040-01-01"}),
        json!({"containers": ["/a/"], "fingerprint_expression": "{{ data | stringify }}"}),
    ];
    for more in same {
        let response = create(&client, deduplicated(&number, more.clone())).await;
        assert_eq!(
            (is_duplicate(&response), response.id()),
            (true, own.id()),
            "{more}"
        );
    }
}

/// Covers 7.4.
#[tokio::test]
async fn the_oldest_duplicate_is_returned() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let mut ids = Vec::new();
    let start = vault.vault.clock.now().await.unwrap();
    for n in 0..4 {
        // The first is the oldest; the others are of the same instant.
        let at = start + SignedDuration::from_secs(n.min(1));
        vault.vault.clock.freeze(Some(at));
        let distinct = json!({"deduplicate_token": false, "metadata": {"n": n.to_string()}});
        ids.push(
            create(&client, deduplicated(&json!("x"), distinct))
                .await
                .id(),
        );
    }
    let create_duplicate = async || {
        create(&client, deduplicated(&json!("x"), json!({})))
            .await
            .id()
    };

    vault.vault.clock.freeze(None);
    assert_eq!(create_duplicate().await, ids[0]);
    client.delete(&format!("/tokens/{}", ids[0])).await;
    // Among tokens of the same instant, the lowest id wins.
    assert_eq!(create_duplicate().await, *ids[1..].iter().min().unwrap());
    assert_eq!(counts(&vault).await, (3, 0));
}
