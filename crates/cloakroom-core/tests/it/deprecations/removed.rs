//! Deprecated features that are gone or rejected.

use std::collections::BTreeMap;

use cloakroom::deprecations::DeprecatedFeature;
use cloakroom_testkit::{Client, TestResponse};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Fixture, assert_headers};

async fn send_without_body(client: &Client, method: Method, path: &str) -> TestResponse {
    client.send(client.request(method, path)).await
}

/// Covers 26.3.
#[tokio::test]
async fn reactor_callback_urls_are_rejected() {
    for path in ["/reactors/{id}/react", "/reactors/{id}/react-async"] {
        let fixture = Fixture::start().await;
        let path = path.replace("{id}", "c06d0789-0a38-40be-b7cc-c28a718f76f1");
        let plain = json!({"args": {"a": 1}, "callback_url": null});
        let unused = fixture.client.post(&path, plain).await;
        assert_eq!(unused.status, StatusCode::NOT_IMPLEMENTED);
        assert_eq!(unused.header("deprecation"), "");

        let body = json!({"args": {}, "callback_url": "https://shop.example/done"});
        let rejected = fixture.client.post(&path, body).await;

        assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
        let rule = "was removed: use the events of reactors and POST /reactors/{id}/react-async";
        assert_eq!(rejected.body["errors"], json!({"callback_url": [rule]}));
        let row = DeprecatedFeature::ReactorCallbackUrl;
        fixture.assert_reported(&rejected, row).await;
    }
}

/// Covers 26.5.
#[tokio::test]
async fn regenerating_a_key_is_gone() {
    let fixture = Fixture::start().await;
    let path = "/applications/c06d0789-0a38-40be-b7cc-c28a718f76f1/regenerate";

    let gone = send_without_body(&fixture.client, Method::POST, path).await;

    assert_eq!(gone.status, StatusCode::GONE);
    let detail = gone.body["detail"].as_str().unwrap();
    assert!(detail.contains("POST /applications/{id}/keys"), "{detail}");
    fixture
        .assert_reported(&gone, DeprecatedFeature::RegenerateKey)
        .await;
}

/// Covers 26.6.
#[tokio::test]
async fn complex_queries_are_rejected() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    let mut expected = BTreeMap::new();
    for query in [
        "type:card",
        "fingerprint:abc",
        "container:\"/pci/high/\"",
        "created_by:abc",
        "created_at:2024",
        "modified_by:abc",
        "modified_at:2024",
        "id:a AND metadata.a:1",
        "data:a AND metadata.a:1",
        "metadata.a:1 OR metadata.b:2",
        "NOT metadata.a:1",
        "-metadata.a:1",
    ] {
        let rejected = client.post("/tokens/search", json!({"query": query})).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(rejected.refused(), ["query"], "{query}");
        assert_headers(
            &fixture.vault,
            &rejected,
            Some(DeprecatedFeature::SearchTokensV1),
        );
        for row in [
            DeprecatedFeature::SearchTokensV1,
            DeprecatedFeature::ComplexSearch,
        ] {
            *expected.entry(row.row().name.to_owned()).or_default() += 1;
        }
    }
    for query in [
        "id:a",
        "data:a",
        "metadata.a:1",
        "metadata.a:1 AND metadata.b:2",
    ] {
        let served = client.post("/tokens/search", json!({"query": query})).await;
        assert_eq!(served.status, StatusCode::OK, "{query}");
        *expected.entry("search_tokens_v1".to_owned()).or_default() += 1;
    }
    assert_eq!(fixture.usage().await, expected);
}

/// Covers 26.7.
#[tokio::test]
async fn reactor_formulas_are_gone() {
    let id = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let row = DeprecatedFeature::ReactorFormulas;
    let fixture = Fixture::start().await;
    let mut calls = 0;
    for operation in row.row().operations {
        let (method, path) = operation.split_once(' ').unwrap();
        let path = path.replace("{id}", id);
        let gone = send_without_body(&fixture.client, method.parse().unwrap(), &path).await;
        assert_eq!(gone.status, StatusCode::GONE, "{operation}");
        let detail = "This is gone (Reactor formulas): write the code into the reactor, as `code`.";
        assert_eq!(gone.body["detail"], detail);
        assert_headers(&fixture.vault, &gone, Some(row));
        calls += 1;
    }
    let body = json!({"name": "n", "formula": {"id": id}});
    let one = format!("/reactors/{id}");
    for rejected in [
        fixture.client.post("/reactors", body.clone()).await,
        fixture.client.put(&one, body.clone()).await,
        fixture.client.patch(&one, body).await,
    ] {
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
        let rule = "was removed: write the code into the reactor, as `code`";
        assert_eq!(rejected.body["errors"], json!({"formula": [rule]}));
        assert_headers(&fixture.vault, &rejected, None);
        calls += 1;
    }
    let code = json!({"name": "n", "code": "module.exports = () => 1", "formula": null});
    let unsupported = fixture.client.post("/reactors", code).await;
    assert_eq!(unsupported.status, StatusCode::NOT_IMPLEMENTED);
    let expected = BTreeMap::from([(row.row().name.to_owned(), calls)]);
    assert_eq!(fixture.usage().await, expected);
}

/// Covers 26.8.
#[tokio::test]
async fn reactors_of_proxies_are_rejected() {
    let fixture = Fixture::start().await;
    let client = &fixture.manager().await;
    let one = "/proxies/c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let nulls = json!({"name": "n", "destination_url": "https://shop.example", "request_reactor_id": null,
        "response_reactor_id": null});
    let unused = client.post("/proxies", nulls).await;
    assert_eq!(unused.status, StatusCode::CREATED);
    assert_eq!(unused.header("deprecation"), "");

    let row = DeprecatedFeature::ProxyReactors;
    let rule = "was removed: use request_transform and response_transform";
    for attribute in ["request_reactor_id", "response_reactor_id"] {
        let mut body = json!({"name": "n", "destination_url": "https://shop.example"});
        body[attribute] = Value::from("c06d0789-0a38-40be-b7cc-c28a718f76f1");
        for rejected in [
            client.post("/proxies", body.clone()).await,
            client.put(one, body.clone()).await,
            client.patch(one, body.clone()).await,
        ] {
            assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
            assert_eq!(rejected.body["errors"], json!({attribute: [rule]}));
            assert_headers(&fixture.vault, &rejected, None);
        }
    }
    let expected = BTreeMap::from([(row.row().name.to_owned(), 6)]);
    assert_eq!(fixture.usage().await, expected);
}

/// Covers 26.10.
#[tokio::test]
async fn permissions_by_classification_are_rejected() {
    let fixture = Fixture::start().await;
    let manager = fixture.manager().await;
    let app =
        |permissions: Value| json!({"name": "n", "type": "private", "permissions": permissions});
    let created_before = manager
        .post("/applications", app(json!(["token:read"])))
        .await;
    let path = format!("/applications/{}", created_before.id());
    let ruled = json!({"name": "n", "type": "private", "rules": [{
        "description": "d", "priority": 1, "container": "/", "transform": "mask",
        "permissions": ["token:pii:read:low"]}]});

    let created = manager
        .post("/applications", app(json!(["token:pci:read:high"])))
        .await;
    let changed = manager.put(&path, app(json!(["token:bank:create"]))).await;
    let in_rule = manager.post("/applications", ruled).await;
    let unknown = manager
        .post("/applications", app(json!(["token:shred"])))
        .await;

    let row = DeprecatedFeature::ClassificationPermissions;
    for response in [&created, &changed, &in_rule] {
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_headers(&fixture.vault, response, None);
    }
    assert_eq!(created.refused(), ["permissions"]);
    assert_eq!(in_rule.refused(), ["rules[0].permissions"]);
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    assert_eq!(unknown.header("deprecation"), "");
    let expected = BTreeMap::from([(row.row().name.to_owned(), 3)]);
    assert_eq!(fixture.usage().await, expected);
}

/// Covers 26.11.
#[tokio::test]
async fn expiring_applications_are_rejected() {
    let fixture = Fixture::start().await;
    let manager = fixture.manager().await;
    let body = json!({"name": "n", "type": "expiring", "permissions": ["token:create"]});

    let rejected = manager.post("/applications", body).await;

    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    let rule = "was removed: use sessions of a public application";
    assert_eq!(rejected.body["errors"]["type"], json!([rule]));
    let row = DeprecatedFeature::ExpiringApplications;
    fixture.assert_reported(&rejected, row).await;
}
