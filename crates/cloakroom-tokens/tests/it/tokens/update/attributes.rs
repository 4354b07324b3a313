//! Replacing other attributes, and the values derived from them.

use std::collections::BTreeSet;

use cloakroom::access::Transform;
use cloakroom_testkit::{TestResponse, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{id_of, in_seconds, wait_until_expired};
use crate::tokens::{create, search_ids, send_patch, setup};

/// Covers 5.6.
#[tokio::test]
async fn containers_are_replaced_and_null_restores_the_default() {
    let (_vault, _, client) = setup().await;
    let new =
        json!({"type": "card", "data": {"number": "4242424242424242"}, "containers": ["/a/"]});
    let path = create(&client, new).await;
    let id = BTreeSet::from([id_of(&path)]);
    let number = client.get(&path).await.body["fingerprint"].clone();

    let steps = [
        (json!(["/B/c/"]), "/b/c/"),
        (json!(["/"]), "/"),
        (json!(null), "/pci/high/"),
        (json!(["/a/"]), "/a/"),
    ];
    for (containers, expected) in steps {
        let changed = send_patch(&client, &path, json!({ "containers": containers })).await;
        let read = client.get(&path).await;
        assert_eq!(changed.body["containers"], json!([expected]));
        assert_eq!(read.body["containers"], json!([expected]));
        assert_eq!(read.body["fingerprint"], number);
        let number = number.as_str().unwrap();
        for query in [
            format!("container:\"{expected}\""),
            format!("container:\"{expected}\" AND fingerprint:{number}"),
        ] {
            assert_eq!(search_ids(&client, &query).await, id, "{query}");
        }
    }
    assert!(search_ids(&client, "container:\"/b/\"").await.is_empty());
    assert!(search_ids(&client, "container:\"/pci/\"").await.is_empty());
}

/// Covers 5.7.
#[tokio::test]
async fn search_indexes_are_replaced_and_null_clears_them() {
    let (_vault, _, client) = setup().await;
    let new = json!({
        "type": "token",
        "data": {"a": "one", "b": "two"},
        "search_indexes": ["{{ data.a }}"],
    });
    let path = create(&client, new).await;
    let ssn = create(
        &client,
        json!({"type": "social_security_number", "data": "078-05-1120"}),
    )
    .await;
    let is_found = async |path: &str, query: &str| {
        search_ids(&client, &format!("data:{query}")).await == BTreeSet::from([id_of(path)])
    };

    assert!(is_found(&path, "one").await && !is_found(&path, "two").await);
    let steps = [
        (json!(["{{ data.b }}"]), false, true),
        (json!(["{{ data.b }}", "{{ data.a }}"]), true, true),
        (json!([]), false, false),
        (json!(["{{ data.a }}"]), true, false),
        (json!(null), false, false),
    ];
    for (indexes, one, two) in steps {
        let changed = send_patch(&client, &path, json!({ "search_indexes": indexes })).await;
        let shown = indexes.as_array().cloned().unwrap_or_default();
        assert_eq!(changed.body["search_indexes"], Value::Array(shown));
        assert_eq!(is_found(&path, "one").await, one, "{indexes}");
        assert_eq!(is_found(&path, "two").await, two, "{indexes}");
    }
    // The default indexes of the type are cleared as well, and are not restored.
    assert!(is_found(&ssn, "078051120").await);
    send_patch(&client, &ssn, json!({"search_indexes": null})).await;
    let changed = send_patch(&client, &ssn, json!({"data": "123-45-6789"})).await;
    assert_eq!(changed.body["search_indexes"], json!([]));
    for query in ["078051120", "1120", "123456789"] {
        assert!(!is_found(&ssn, query).await, "{query}");
    }
}

/// Covers 5.8.
#[tokio::test]
async fn fingerprint_expressions_are_replaced_and_null_restores_the_default() {
    let (_vault, _, client) = setup().await;
    let data = json!({"number": "4242424242424242", "expiration_month": 12});
    let fingerprint = async |expression: Value| {
        let new = json!({"type": "card", "data": data, "fingerprint_expression": expression});
        client.post("/tokens", new).await.body["fingerprint"].clone()
    };
    let path = create(&client, json!({"type": "card", "data": data})).await;

    let with_month = "{{ data.number }}|{{ data.expiration_month }}";
    for expression in [
        json!(with_month),
        json!(null),
        json!("{{ data.number }}|"),
        json!(null),
    ] {
        let patch = json!({ "fingerprint_expression": expression });
        let changed = send_patch(&client, &path, patch).await;

        let shown = expression.as_str().unwrap_or("{{ data.number }}");
        assert_eq!(changed.body["fingerprint_expression"], shown);
        assert_eq!(changed.body["fingerprint"], fingerprint(expression).await);
    }
}

/// Covers 5.8, 5.14.
#[tokio::test]
async fn tenants_without_fingerprints_get_them_only_on_request() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let path = create(&client, json!({"type": "token", "data": "x"})).await;

    let cases = [
        (json!({}), None),
        (json!({"data": "y"}), None),
        (
            json!({"fingerprint_expression": "{{ data }}"}),
            Some("{{ data }}"),
        ),
        (json!({"data": "z"}), Some("{{ data }}")),
        (
            json!({"fingerprint_expression": null}),
            Some("{{ data | stringify }}"),
        ),
    ];
    for (patch, expression) in cases {
        let changed = send_patch(&client, &path, patch.clone()).await;
        let shown = changed.body["fingerprint_expression"].as_str();
        assert_eq!(shown, expression, "{patch}");
        assert_eq!(
            changed.body["fingerprint"].is_string(),
            expression.is_some()
        );
    }
    let other = create(&client, json!({"type": "token", "data": "w"})).await;
    let deduplicated = send_patch(&client, &other, json!({"deduplicate_token": true})).await;
    assert!(deduplicated.body["fingerprint"].is_string());
}

/// Covers 5.10.
#[tokio::test]
async fn expiries_are_replaced_and_null_removes_them() {
    let (_vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": 1})).await;

    let steps = [
        (
            json!("8/26/2030 7:23:57 PM -07:00"),
            Some("2030-08-26T19:23:57-07:00"),
        ),
        (json!("2031-01-01"), Some("2031-01-01T00:00:00+00:00")),
        (json!(null), None),
        (
            json!("2032-01-01T00:00:00.5Z"),
            Some("2032-01-01T00:00:00.5+00:00"),
        ),
    ];
    for (expiry, expected) in steps {
        let changed = send_patch(&client, &path, json!({ "expires_at": expiry })).await;
        let unchanged = send_patch(&client, &path, json!({})).await;
        let read = client.get(&path).await;
        for response in [changed, unchanged, read] {
            let expires_at = response.body.get("expires_at").and_then(Value::as_str);
            assert_eq!(expires_at, expected, "{expiry}");
        }
    }
    let past = client
        .patch(&path, json!({"expires_at": "2020-01-01"}))
        .await;
    assert_eq!(past.refused(), ["expires_at"]);
    let read = client.get(&path).await;
    assert_eq!(read.body["expires_at"], "2032-01-01T00:00:00.5+00:00");
}

/// Covers 5.22.
#[tokio::test]
async fn shortened_expiries_apply_and_expired_tokens_cannot_be_updated() {
    let (vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": 1})).await;

    send_patch(
        &client,
        &path,
        json!({"expires_at": in_seconds(&vault, 2).await}),
    )
    .await;
    wait_until_expired(&client, &path).await;
    let late = client.patch(&path, json!({"expires_at": null})).await;
    let unknown = client.patch("/tokens/nowhere", json!({})).await;

    assert_eq!(late.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(late.bytes, unknown.bytes);
}

/// Covers 5.14, 5.17.
#[tokio::test]
async fn fingerprints_indexes_and_details_follow_the_data() {
    let (_vault, _, client) = setup().await;
    let numbers = ["4242424242424242", "378282246310005"];
    let new = |number: &str| {
        json!({
            "type": "card",
            "data": {"number": number, "expiration_month": 12, "expiration_year": 2030},
            "search_indexes": ["{{ data.number }}", "{{ data.number | last4 }}"],
        })
    };
    let path = create(&client, new(numbers[0])).await;
    let twin = create(&client, new(numbers[1])).await;
    let before = client.get(&path).await;

    let changed = send_patch(&client, &path, json!({"data": {"number": numbers[1]}})).await;
    let twin = client.get(&twin).await;

    let stored = json!({"number": numbers[1], "expiration_month": 12, "expiration_year": 2030});
    assert_eq!(changed.body["data"], stored);
    assert_ne!(changed.body["fingerprint"], before.body["fingerprint"]);
    assert_eq!(changed.body["fingerprint"], twin.body["fingerprint"]);
    assert_eq!(changed.body["card"]["bin"], "378282");
    assert_eq!(changed.body["card"]["last4"], "0005");
    assert_eq!(changed.body["card"], twin.body["card"]);
    let both = BTreeSet::from([id_of(&path), twin.id()]);
    for query in [numbers[1], "0005"] {
        assert_eq!(search_ids(&client, &format!("data:{query}")).await, both);
    }
    for query in [numbers[0], "4242"] {
        assert!(
            search_ids(&client, &format!("data:{query}"))
                .await
                .is_empty()
        );
    }
    let fingerprint = |response: &TestResponse| {
        let text = response.body["fingerprint"].as_str().unwrap();
        format!("fingerprint:{text}")
    };
    assert_eq!(search_ids(&client, &fingerprint(&changed)).await, both);
    assert!(search_ids(&client, &fingerprint(&before)).await.is_empty());

    let changed = send_patch(&client, &path, json!({"data": {"expiration_month": 1}})).await;
    assert_eq!(changed.body["card"]["expiration_month"], 1);
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});
    let path = create(&client, json!({"type": "bank", "data": bank})).await;
    let changed = send_patch(&client, &path, json!({"data": {"account_number": "98765"}})).await;
    let details = json!({"routing_number": "021000021", "account_number_last4": "8765"});
    assert_eq!(changed.body["bank"], details);
}

/// Covers 5.14.
#[tokio::test]
async fn fingerprints_may_depend_on_metadata() {
    let (_vault, _, client) = setup().await;
    let new = |customer: &str| {
        json!({
            "type": "token",
            "data": "x",
            "metadata": {"customer": customer},
            "fingerprint_expression": "{{ data }}/{{ metadata.customer }}",
        })
    };
    let path = create(&client, new("one")).await;
    let twin = create(&client, new("two")).await;
    let before = client.get(&path).await;

    let changed = send_patch(&client, &path, json!({"metadata": {"customer": "two"}})).await;

    let twin = client.get(&twin).await;
    assert_ne!(changed.body["fingerprint"], before.body["fingerprint"]);
    assert_eq!(changed.body["fingerprint"], twin.body["fingerprint"]);
}
