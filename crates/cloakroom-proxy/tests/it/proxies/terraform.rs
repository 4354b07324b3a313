//! The request sequences of the Terraform provider for applications, keys and proxies.
//!
//! The provider compares what it sent with what it reads: any difference is a change in every later plan.

use cloakroom_testkit::{Client, TestResponse};
use http::StatusCode;
use serde_json::{Value, json};

use super::Fixture;

/// Polls until the state is active, which it is at once; returns the proxy as the provider reads it.
async fn read_active(client: &Client, path: &str) -> Value {
    let read = client.get(path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.body["state"], "active");
    read.body
}

/// The attributes of a request come back unchanged; absent ones are absent.
fn assert_no_drift(sent: &Value, read: &Value) {
    for attribute in [
        "name",
        "destination_url",
        "request_transforms",
        "response_transforms",
        "configuration",
        "require_auth",
        "disable_detokenization",
    ] {
        assert_eq!(read[attribute], sent[attribute], "{attribute}");
    }
    assert_eq!(read["application_id"], sent["application"]["id"]);
    for attribute in ["id", "key", "tenant_id", "created_by", "created_at"] {
        assert!(read[attribute].is_string(), "{attribute}");
    }
}

/// The provider crashes if one of these is missing.
fn assert_problem(response: &TestResponse, status: StatusCode) {
    assert_eq!(response.status, status);
    for member in ["title", "detail"] {
        assert!(response.body[member].is_string(), "{member}");
    }
    assert_eq!(response.body["status"], status.as_u16());
}

/// Covers 29.18.
#[tokio::test]
async fn an_application_its_key_and_a_proxy_are_created_read_changed_and_deleted() {
    let fixture = Fixture::start().await;
    let client = &fixture.manager;

    let new = json!({"name": "Terraform application", "type": "private", "permissions": ["token:create"], "create_key": false});
    let application = client.post("/applications", new.clone()).await;
    assert_eq!(application.status, StatusCode::CREATED);
    let application_path = format!("/applications/{}", application.id());
    let read = client.get(&application_path).await;
    assert_eq!(read.body["permissions"], new["permissions"]);
    assert!(read.body["created_at"].is_string());
    let keys = format!("{application_path}/keys");
    let request = client.request(http::Method::POST, &keys);
    let key = client.send(request).await;
    assert_eq!(key.status, StatusCode::CREATED);
    assert!(key.body["created_at"].is_string() && key.body["key"].is_string());
    let key_path = format!("{keys}/{}", key.id());
    assert_eq!(client.get(&key_path).await.status, StatusCode::OK);

    let mask = json!({"type": "mask", "code": "", "matcher": "regex", "expression": "([0-9]{12})[0-9]{4}", "replacement": "*"});
    let tokenize = json!({"type": "tokenize", "code": "", "matcher": "", "expression": "", "replacement": "", "options": {
        "identifier": "cardToken", "token": {"type": "card", "data": "{{ res.json }}",
        "metadata": {"source": "proxy-response-transform", "number": "123"}}}});
    let append = json!({"type": "append_json", "code": "", "matcher": "", "expression": "", "replacement": "", "options": {
        "value": "{{ transform_identifier: 'cardToken' | json: '$.id' }}", "location": "$.card_token_id"}});
    let mut sent = json!({
        "name": "Terraform proxy",
        "destination_url": "https://api.example.com/post",
        "response_transforms": [tokenize, append, mask],
        "application": {"id": application.id()},
        "configuration": {"TEST_FOO": "TEST_FOO", "TEST_CONFIG_BAR": "TEST_CONFIG_BAR"},
        "require_auth": false,
        "disable_detokenization": false,
    });
    let created = client.post("/proxies", sent.clone()).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/proxies/{}", created.id());
    assert_no_drift(&sent, &read_active(client, &path).await);
    assert_no_drift(&sent, &read_active(client, &path).await);

    sent["name"] = json!("Terraform proxy updated name");
    sent["configuration"] = json!({"TEST_FOO": "TEST_FOO_UPDATED"});
    sent["require_auth"] = json!(true);
    sent["request_transforms"] = json!([{"type": "append_header", "code": "", "matcher": "", "expression": "",
        "replacement": "", "options": {"value": "{{ config: TEST_FOO }}", "location": "X-Foo"}}]);
    let changed = client.put(&path, sent.clone()).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    assert_no_drift(&sent, &changed.body);
    assert_no_drift(&sent, &read_active(client, &path).await);

    // Empty lists and maps are omitted: absent means cleared.
    let cleared = json!({"name": "Terraform proxy", "destination_url": "https://api.example.com/post",
        "require_auth": true, "disable_detokenization": true});
    let changed = client.put(&path, cleared.clone()).await;
    assert_no_drift(&cleared, &changed.body);
    assert_no_drift(&cleared, &read_active(client, &path).await);

    let invalid =
        json!({"name": "", "destination_url": "http://api.example.com", "require_auth": true});
    assert_problem(&client.put(&path, invalid).await, StatusCode::BAD_REQUEST);
    assert_problem(&fixture.caller.get(&path).await, StatusCode::FORBIDDEN);
    let unknown = fixture.vault.client_with(Some("key_test_us_mgt_unknown"));
    assert_problem(&unknown.get(&path).await, StatusCode::UNAUTHORIZED);

    assert_eq!(client.delete(&path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        client.delete(&key_path).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        client.delete(&application_path).await.status,
        StatusCode::NO_CONTENT
    );
}
