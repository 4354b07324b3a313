//! Deduplication of the elements of documents.

use std::collections::BTreeSet;

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{TestVault, everything, grants};
use http::StatusCode;
use serde_json::json;

use super::{create, start, tokenize};

/// Covers 11.12, 7.2.
#[tokio::test]
async fn equal_elements_are_deduplicated() {
    let (vault, _, client) = start().await;
    let token = |data: &str, deduplicate: bool, container: &str| {
        let containers = json!([container]);
        json!({"type": "token", "data": data, "deduplicate_token": deduplicate, "containers": containers})
    };
    let existing = create(&client, token("old", false, "/a/")).await;

    let document = json!({
        "first": token("new", true, "/a/"),
        "second": [token("new", true, "/a/")],
        "elsewhere": token("new", true, "/b/"),
        "without": token("new", false, "/a/"),
        "duplicate": token("old", true, "/a/"),
    });
    let body = tokenize(&client, document).await;

    let extras = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
    let fresh = json!({"deduplicated": false});
    assert_eq!(body["first"]["_extras"], fresh);
    assert_eq!(body["second"][0]["_extras"], extras);
    assert_eq!(body["second"][0]["id"], body["first"]["id"]);
    assert_eq!(body["second"][0]["data"], "new");
    assert_eq!(body["duplicate"]["_extras"], extras);
    assert_eq!(body["duplicate"]["id"], existing);
    assert_eq!(body["without"]["_extras"], fresh);
    assert_eq!(body["elsewhere"]["_extras"], fresh);
    let ids =
        ["first", "elsewhere", "without", "duplicate"].map(|name| body[name]["id"].to_string());
    assert_eq!(BTreeSet::from(ids).len(), 4);

    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let ssn = json!({"type": "social_security_number", "data": "078051120"});
    let body = tokenize(&client, json!(["078051120", ssn, "078051120", 7, "7"])).await;
    assert_eq!(body[0], body[2]);
    assert_ne!(body[1]["id"], body[0]);
    let again = tokenize(&client, json!([ssn, "078051120"])).await;
    assert_eq!(again[0]["id"], body[1]["id"]);
    assert_eq!(again[1], body[0]);
}

/// Covers 11.12, 7.9.
#[tokio::test]
async fn duplicates_show_only_what_the_caller_may_read() {
    use Permission::TokenCreate;
    let (vault, tenant, writer) = start().await;
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenCreate]))
        .await;
    let public = vault.client_with(Some(&public.key));
    let card =
        json!({"type": "card", "data": {"number": "4242424242424242"}, "metadata": {"k": "v"}});
    let existing = writer.post("/tokens", card.clone()).await.body;
    let mut same = card;
    same["deduplicate_token"] = json!(true);

    let body = tokenize(&public, json!({ "card": same })).await;

    let expected = json!({
        "id": existing["id"],
        "tenant_id": existing["tenant_id"],
        "type": "card",
        "fingerprint": existing["fingerprint"],
        "containers": ["/pci/high/"],
        "_extras": {"deduplicated": true, "deduplication_behavior": "read_existing"},
    });
    assert_eq!(body["card"], expected);
}

/// Covers 11.12.
#[tokio::test]
async fn concurrent_documents_with_equal_values_share_tokens() {
    let vault = TestVault::start_with_long_timeouts().await;
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let words = ["one", "two", "three", "four", "five"];

    let mut tokenizing = tokio::task::JoinSet::new();
    for round in 0..20 {
        let client = client.clone();
        let mut order = words;
        order.rotate_left(round % 5);
        if round % 2 == 0 {
            order.reverse();
        }
        tokenizing.spawn(async move { (order, client.post("/tokenize", json!(order)).await) });
    }

    let mut ids = BTreeSet::new();
    for (order, response) in tokenizing.join_all().await {
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        for (word, id) in order.iter().zip(response.body.as_array().unwrap()) {
            ids.insert((*word, id.to_string()));
        }
    }
    assert_eq!(ids.len(), words.len(), "{ids:?}");
}
