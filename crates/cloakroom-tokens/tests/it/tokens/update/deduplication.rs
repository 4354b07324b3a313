//! Updates that make two tokens equal.

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{Client, TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{id_of, in_seconds, row_version, wait_until_expired};
use crate::tokens::{create, send_patch, setup};

/// Covers 5.19, 7.2, 7.3.
#[tokio::test]
async fn updates_that_create_a_duplicate_return_the_existing_token() {
    let (vault, _, client) = setup().await;
    let new = |data: &str, container: &str| {
        let metadata = json!({"of": data});
        json!({"type": "token", "data": data, "containers": [container], "metadata": metadata})
    };
    let other = create(&client, new("other", "/a/")).await;
    let mine = create(&client, new("mine", "/a/")).await;
    let before = client.get(&mine).await;
    let patch = json!({"data": "other", "metadata": {"n": "1"}, "deduplicate_token": true});

    let duplicate = send_patch(&client, &mine, patch).await;
    let moved = create(&client, new("other", "/b/")).await;
    let moves_in = json!({"containers": ["/a/"], "deduplicate_token": true});
    let duplicate_after_move = send_patch(&client, &moved, moves_in).await;

    let extras = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
    for duplicate in [duplicate, duplicate_after_move] {
        assert_eq!(duplicate.id(), id_of(&other));
        assert_eq!(duplicate.body["_extras"], extras);
        assert_eq!(duplicate.body["data"], "other");
        assert_eq!(duplicate.body["metadata"], json!({"of": "other"}));
        assert_eq!(duplicate.body.get("modified_at"), None);
    }
    assert_eq!(client.get(&mine).await.bytes, before.bytes);
    assert_eq!(row_version(&vault, &other).await, 1);
    assert_eq!(row_version(&vault, &moved).await, 1);
    // Tokens in another container, of another type, or updated without deduplication are not duplicates.
    let elsewhere = json!({"data": "other", "containers": ["/c/"], "deduplicate_token": true});
    assert_eq!(
        send_patch(&client, &mine, elsewhere).await.id(),
        id_of(&mine)
    );
    let without = json!({"containers": ["/a/"], "deduplicate_token": false});
    assert_eq!(send_patch(&client, &mine, without).await.id(), id_of(&mine));
    let ssn = json!({"type": "social_security_number", "data": "078051120", "containers": ["/a/"]});
    let ssn = create(&client, ssn).await;
    let ein = json!({"type": "employer_id_number", "data": "123456789", "containers": ["/a/"]});
    let ein = create(&client, ein).await;
    let patch = json!({"data": "078051120", "deduplicate_token": true});
    assert_eq!(send_patch(&client, &ein, patch).await.id(), id_of(&ein));
    assert_eq!(client.get(&ssn).await.body.get("modified_at"), None);
}

/// Covers 5.19, 7.4, 7.15.
#[tokio::test]
async fn the_oldest_duplicate_is_returned() {
    let (_vault, _, client) = setup().await;
    let mut equal = Vec::new();
    for _ in 0..3 {
        equal.push(create(&client, json!({"type": "token", "data": "same"})).await);
    }
    let mine = create(&client, json!({"type": "token", "data": "mine"})).await;
    let patch = json!({"data": "same", "deduplicate_token": true});

    let oldest = send_patch(&client, &mine, patch.clone()).await;
    client.delete(&equal[0]).await;
    let next = send_patch(&client, &mine, patch).await;

    assert_eq!(oldest.id(), id_of(&equal[0]));
    assert_eq!(next.id(), id_of(&equal[1]));
}

/// Covers 5.9, 7.1.
#[tokio::test]
async fn the_request_overrides_the_deduplication_setting_of_the_tenant() {
    let vault = TestVault::start().await;
    for setting in [true, false] {
        let tenant = vault
            .tenant_with(&[("deduplicate_tokens", &setting.to_string())])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        create(&client, json!({"type": "token", "data": "other"})).await;

        let cases = [
            (json!({"data": "other", "deduplicate_token": null}), setting),
            (json!({"data": "other"}), setting),
            (json!({"data": "other", "deduplicate_token": true}), true),
            (json!({"data": "other", "deduplicate_token": false}), false),
        ];
        for (number, (patch, expected)) in cases.into_iter().enumerate() {
            let mine = create(&client, json!({"type": "token", "data": number})).await;
            let changed = send_patch(&client, &mine, patch.clone()).await;
            let case = format!("{setting} {patch}");
            assert_eq!(changed.body["_extras"]["deduplicated"], expected, "{case}");
            assert_eq!(changed.id() != id_of(&mine), expected, "{case}");
            client.delete(&mine).await;
        }
    }
}

/// Covers 5.20, 7.8, 7.9.
#[tokio::test]
async fn duplicates_reveal_only_their_id_to_callers_without_read_permission() {
    use Permission::{TokenRead, TokenUpdate};
    let (vault, tenant, writer) = setup().await;
    let other = json!({
        "type": "token",
        "data": "the secret",
        "mask": "{{ data | reveal_last: 4 }}",
        "metadata": {"k": "v"},
        "search_indexes": ["{{ data }}"],
        "fingerprint_expression": "{{ data | downcase }}",
        "expires_at": "2040-01-01",
    });
    let other = read(&writer, &create(&writer, other).await).await;
    let mut elsewhere = grants(&[]);
    elsewhere.rules = vec![
        rule(1, "/", Transform::Reveal, &[TokenUpdate]),
        rule(2, "/elsewhere/", Transform::Reveal, &[TokenRead]),
    ];
    let callers = [vault.client(&tenant, elsewhere).await];
    let mine = json!({
        "type": "token",
        "data": "mine",
        "fingerprint_expression": "{{ data | downcase }}",
    });
    let mine = create(&writer, mine).await;
    let patch = json!({"data": "THE SECRET", "deduplicate_token": true});

    for caller in callers {
        let duplicate = send_patch(&caller, &mine, patch.clone()).await;

        let expected = json!({
            "id": other["id"],
            "tenant_id": other["tenant_id"],
            "type": "token",
            "fingerprint": other["fingerprint"],
            "containers": ["/general/high/"],
            "_extras": {"deduplicated": true, "deduplication_behavior": "read_existing"},
        });
        assert_eq!(duplicate.body, expected);
    }
    let mut granted = grants(&[TokenUpdate]);
    granted.rules = vec![rule(1, "/", Transform::Mask, &[TokenRead])];
    let masked = vault.client(&tenant, granted).await;
    let duplicate = send_patch(&masked, &mine, patch).await;
    assert_eq!(duplicate.body["data"], "XXXXXXcret");
    assert_eq!(duplicate.body["metadata"], json!({"k": "v"}));
    assert_eq!(writer.get(&mine).await.body["data"], "mine");
}

async fn read(client: &Client, path: &str) -> Value {
    client.get(path).await.body
}

/// Covers 5.21.
#[tokio::test]
async fn a_token_is_not_a_duplicate_of_itself() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;

    let own = [
        json!({}),
        json!({"data": {"a": 1}}),
        json!({"data": {"a": 2}}),
        json!({"data": {"a": 1}}),
        json!({"containers": ["/b/"]}),
        json!({"containers": null}),
        json!({"metadata": {"k": "v"}}),
        json!({"fingerprint_expression": "{{ data.a }}"}),
        json!({"deduplicate_token": false}),
        json!({"deduplicate_token": true}),
    ];
    for (version, patch) in (2..).zip(own) {
        let changed = send_patch(&client, &path, patch.clone()).await;
        assert_eq!(changed.id(), id_of(&path), "{patch}");
        assert_eq!(
            changed.body["_extras"],
            json!({"deduplicated": false}),
            "{patch}"
        );
        assert_eq!(row_version(&vault, &path).await, version, "{patch}");
    }
}

/// Covers 5.19, 7.14.
#[tokio::test]
async fn expired_tokens_are_not_duplicates() {
    let (vault, _, client) = setup().await;
    let expires_at = in_seconds(&vault, 2).await;
    let brief = json!({
        "type": "token",
        "data": "same",
        "deduplicate_token": true,
        "expires_at": expires_at,
    });
    let brief = create(&client, brief).await;
    let mine = create(&client, json!({"type": "token", "data": "mine"})).await;
    wait_until_expired(&client, &brief).await;

    let patch = json!({"data": "same", "deduplicate_token": true});
    let changed = send_patch(&client, &mine, patch).await;

    assert_eq!(changed.id(), id_of(&mine));
    assert_eq!(changed.body["data"], "same");
    assert_eq!(changed.body["_extras"], json!({"deduplicated": false}));
}

/// Covers 7.11, 8.8.
#[tokio::test]
async fn past_expiries_are_rejected_with_deduplication() {
    let vault = TestVault::start().await;
    for behavior in ["read_existing", "update_existing"] {
        let tenant = vault
            .tenant_with(&[("token_deduplication_behavior", behavior)])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let new = |data: &str, expires_at: Value| {
            let deduplicate = json!(true);
            json!({"type": "token", "data": data, "deduplicate_token": deduplicate, "expires_at": expires_at})
        };
        let path = create(&client, new("there", json!(null))).await;

        let fresh = client
            .post("/tokens", new("new", json!("2020-01-01")))
            .await;
        let existing = client
            .post("/tokens", new("there", json!("2020-01-01")))
            .await;
        let patch = json!({"data": "other", "deduplicate_token": true, "expires_at": "2020-01-01"});
        let changed = client.patch(&path, patch).await;

        assert_eq!(fresh.refused(), ["expires_at"], "{behavior}");
        assert_eq!(changed.refused(), ["expires_at"], "{behavior}");
        match behavior {
            // Attributes of the request are ignored when the existing token is only read.
            "read_existing" => assert_eq!(existing.status, StatusCode::CREATED),
            _ => assert_eq!(existing.refused(), ["expires_at"]),
        }
        assert_eq!(row_version(&vault, &path).await, 1);
    }
}
