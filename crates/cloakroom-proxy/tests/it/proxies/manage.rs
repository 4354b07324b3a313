//! Creating, reading, listing, changing and deleting proxies, and who may.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::grants;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Fixture, UNKNOWN_ID, manager, manager_with};

/// Covers 29.1, 29.2, 29.3.
#[tokio::test]
async fn a_new_proxy_is_returned_with_its_key_and_read_alike() {
    let fixture = Fixture::start().await;
    let mut new = fixture.new_proxy();
    new["destination_url"] = json!("https://api.example.com/v1");
    new["configuration"] = json!({"API_KEY": "sk_live"});
    new["unknown"] = json!("ignored");

    let created = fixture.manager.post("/proxies", new).await;

    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/proxies/{}", created.id());
    let location = format!("{}{path}", fixture.vault.base_url);
    assert_eq!(created.header("location"), location);
    let key = created.body["key"].as_str().unwrap();
    assert_eq!(key.len(), 32, "{key}");
    assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    insta::assert_snapshot!(
        created.told(&["id", "tenant_id", "key", "created_by", "created_at"]), @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "name": "Payments",
      "key": "[key]",
      "destination_url": "https://api.example.com/v1",
      "configuration": {
        "API_KEY": "sk_live"
      },
      "require_auth": true,
      "disable_detokenization": false,
      "state": "active",
      "created_by": "[created_by]",
      "created_at": "[created_at]"
    }
    "#);
    let read = fixture.manager.get(&path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.body, created.body);
}

/// Covers 29.2, 29.4.
#[expect(clippy::too_many_lines, reason = "the life of one proxy")]
#[tokio::test]
async fn invalid_proxies_are_rejected_with_every_attribute() {
    let fixture = Fixture::start().await;
    let url = "https://api.example.com";
    let many: Value = (0..26)
        .map(|n| (n.to_string(), json!("v")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let management = fixture
        .vault
        .holder(
            &fixture.tenant,
            ApplicationKind::Management,
            grants(&[Permission::LogRead]),
        )
        .await;
    let cases = [
        (json!({}), vec!["destination_url", "name"]),
        (
            json!({"name": "a\nb", "destination_url": url}),
            vec!["name"],
        ),
        (
            json!({"name": "4242424242424242", "destination_url": url}),
            vec!["name"],
        ),
        (
            json!({"name": "a", "destination_url": "http://api.example.com"}),
            vec!["destination_url"],
        ),
        (
            json!({"name": "a", "destination_url": "https://10.0.0.1"}),
            vec!["destination_url"],
        ),
        (
            json!({"name": "a", "destination_url": "https://user:secret@api.example.com"}),
            vec!["destination_url"],
        ),
        (
            json!({"name": "a", "destination_url": "https://api.example.com:8443"}),
            vec!["destination_url"],
        ),
        (
            json!({"name": "a", "destination_url": format!("{url}/{}", "a".repeat(400))}),
            vec!["destination_url"],
        ),
        (
            json!({"name": "a", "destination_url": format!("{url}/4242424242424242")}),
            vec!["destination_url"],
        ),
        (
            json!({"name": "a", "destination_url": url, "configuration": many}),
            vec!["configuration"],
        ),
        (
            json!({"name": "a", "destination_url": url, "configuration": {"a": 1}}),
            vec!["configuration"],
        ),
        (
            json!({"name": "a", "destination_url": url, "application": {"id": UNKNOWN_ID}}),
            vec!["application.id"],
        ),
        (
            json!({"name": "a", "destination_url": url, "application": {"id": management.application}}),
            vec!["application.id"],
        ),
        (
            json!({"name": "a", "destination_url": url, "application": {}}),
            vec!["application.id"],
        ),
        (
            json!({"name": "a", "destination_url": url, "request_transforms": {}}),
            vec!["request_transforms"],
        ),
        (
            json!({"name": "a", "destination_url": url, "response_transform": {"type": "append_text", "options": {"value": "a"}},
            "response_transforms": [{"type": "append_text", "options": {"value": "a"}}]}),
            vec!["response_transforms"],
        ),
        (
            json!({"name": "a", "destination_url": url, "response_transforms": [{"type": "tokenize", "options": {"token":
            {"type": "card", "data": "{{ res }}"}}}]}),
            vec!["application"],
        ),
    ];
    for (body, expected) in cases {
        let rejected = fixture.manager.post("/proxies", body.clone()).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(rejected.refused(), expected, "{body}");
    }
}

#[tokio::test]
async fn attributes_that_are_not_built_are_not_ignored() {
    let fixture = Fixture::start().await;
    for (attribute, expected) in [
        ("proxy_host", "BT-PROXY-KEY"),
        ("client_certificate", "destinations_file"),
    ] {
        let mut new = fixture.new_proxy();
        new[attribute] = json!("x");
        let rejected = fixture.manager.post("/proxies", new.clone()).await;
        assert_eq!(rejected.status, StatusCode::NOT_IMPLEMENTED, "{attribute}");
        let detail = rejected.body["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{detail}");
        new[attribute] = Value::Null;
        let created = fixture.manager.post("/proxies", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
}

/// Covers 29.5.
#[tokio::test]
async fn code_and_encrypted_configuration_are_not_ignored() {
    let fixture = Fixture::start().await;
    for attribute in ["request_transform", "response_transform"] {
        let mut new = fixture.new_proxy();
        new[attribute] = json!({"type": "code", "code": "module.exports = async (req) => req", "expression": "", "replacement": ""});
        let rejected = fixture.manager.post("/proxies", new).await;
        assert_eq!(rejected.status, StatusCode::NOT_IMPLEMENTED);
        assert_eq!(rejected.body["code"], "not_built");
        let detail = rejected.body["detail"].as_str().unwrap();
        assert!(detail.contains("append_json"), "{detail}");
    }
    let request = fixture
        .manager
        .request(Method::POST, "/proxies")
        .header("content-type", "application/json")
        .header("bt-encrypted", "e30=");
    let request = request.body(fixture.new_proxy().to_string());
    let rejected = fixture.manager.send(request).await;
    assert_eq!(rejected.refused(), ["BT-ENCRYPTED"]);
}

/// Covers 29.6.
#[tokio::test]
async fn proxies_are_listed_by_id_and_name_newest_first() {
    let fixture = Fixture::start().await;
    let mut ids = Vec::new();
    for name in ["Payments live", "Payments_test", "Refunds 100%"] {
        let proxy = fixture.create(json!({"name": name})).await;
        ids.push(proxy["id"].as_str().unwrap().to_owned());
    }
    let all = [ids[2].clone(), ids[1].clone(), ids[0].clone()];
    let cases = [
        ("", all.to_vec()),
        ("?name=pay", vec![ids[1].clone(), ids[0].clone()]),
        ("?name=pay*live", vec![ids[0].clone()]),
        ("?name=_", vec![ids[1].clone()]),
        ("?name=%25", vec![ids[2].clone()]),
        ("?name=nothing", vec![]),
        (
            &format!("?id={}&id={}", ids[0], ids[2]),
            vec![ids[2].clone(), ids[0].clone()],
        ),
        ("?size=1&page=2", vec![ids[1].clone()]),
        ("?page=9", vec![]),
    ];
    for (query, expected) in cases {
        let listed = fixture.manager.get(&format!("/proxies{query}")).await;
        assert_eq!(listed.status, StatusCode::OK, "{query}");
        let found: Vec<&str> = listed
            .items()
            .iter()
            .map(|item| item["id"].as_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{query}");
    }
    let listed = fixture.manager.get("/proxies?size=2").await;
    assert_eq!(listed.body["pagination"]["total_items"], 3);
    assert_eq!(listed.body["pagination"]["total_pages"], 2);
    for query in ["?id=x", "?size=101", "?page=0"] {
        let rejected = fixture.manager.get(&format!("/proxies{query}")).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
    }
}

/// Covers 29.7.
#[tokio::test]
async fn a_replacement_clears_absent_attributes_and_keeps_the_key() {
    let fixture = Fixture::start().await;
    let text = json!([{"type": "append_text", "options": {"value": "!"}}]);
    let proxy = fixture
        .create_with_application(json!({"configuration": {"A": "1"}, "response_transforms": text, "require_auth": false}))
        .await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());

    let mut change = fixture.new_proxy();
    change["name"] = json!("Renamed");
    let changed = fixture.manager.put(&path, change).await;

    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    for cleared in ["configuration", "response_transforms", "application_id"] {
        assert_eq!(changed.body[cleared], Value::Null, "{cleared}");
    }
    assert_eq!(changed.body["require_auth"], true);
    assert_eq!(changed.body["name"], "Renamed");
    assert_eq!(changed.body["key"], proxy["key"]);
    assert_eq!(changed.body["created_at"], proxy["created_at"]);
    assert!(changed.body["modified_at"].is_string() && changed.body["modified_by"].is_string());
    assert_eq!(fixture.manager.get(&path).await.body, changed.body);
}

/// Covers 29.8.
#[tokio::test]
async fn a_merge_patch_changes_only_what_it_names() {
    let fixture = Fixture::start().await;
    let single = json!({"type": "append_text", "options": {"value": "!"}});
    let proxy = fixture
        .create(json!({"configuration": {"A": "1", "B": "2"}, "response_transform": single}))
        .await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());

    let patch = json!({"configuration": {"A": null, "C": "3"}, "require_auth": false});
    let patched = fixture.manager.patch(&path, patch).await;
    assert_eq!(patched.status, StatusCode::NO_CONTENT);
    assert_eq!(patched.bytes, b"");
    let read = fixture.manager.get(&path).await.body;
    assert_eq!(read["configuration"], json!({"B": "2", "C": "3"}));
    assert_eq!(read["require_auth"], false);
    assert_eq!(read["response_transform"], single);
    assert_eq!(read["name"], proxy["name"]);

    // The other form of the transforms replaces the one that was stored.
    let patch = json!({"response_transforms": [single, single]});
    assert_eq!(
        fixture.manager.patch(&path, patch).await.status,
        StatusCode::NO_CONTENT
    );
    let read = fixture.manager.get(&path).await.body;
    assert_eq!(read["response_transforms"], json!([single, single]));
    assert_eq!(read["response_transform"], Value::Null);

    for (patch, expected) in [
        (json!({"name": null}), "name"),
        (
            json!({"destination_url": "https://localhost"}),
            "destination_url",
        ),
        (json!({"require_auth": "yes"}), "require_auth"),
    ] {
        let rejected = fixture.manager.patch(&path, patch).await;
        assert_eq!(rejected.refused(), [expected]);
    }
    let request = fixture.manager.request(Method::PATCH, &path);
    let request = request
        .header("content-type", "application/json")
        .body("{}");
    let rejected = fixture.manager.send(request).await;
    assert_eq!(rejected.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// Covers 29.9, 29.10.
#[tokio::test]
async fn unknown_deleted_and_foreign_proxies_are_not_found() {
    let fixture = Fixture::start().await;
    let proxy = fixture.create(json!({})).await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
    let other = fixture.vault.tenant().await;
    let other = manager(&fixture.vault, &other).await;
    assert!(other.get("/proxies").await.items().is_empty());

    assert_all_not_found(&other, &path, &fixture.new_proxy()).await;
    assert_eq!(
        fixture.manager.delete(&path).await.status,
        StatusCode::NO_CONTENT
    );
    assert_all_not_found(&fixture.manager, &path, &fixture.new_proxy()).await;
    assert_all_not_found(&fixture.manager, "/proxies/any", &fixture.new_proxy()).await;
    assert!(fixture.manager.get("/proxies").await.items().is_empty());
}

async fn assert_all_not_found(client: &cloakroom_testkit::Client, path: &str, body: &Value) {
    let responses = [
        client.get(path).await,
        client.put(path, body.clone()).await,
        client.patch(path, json!({"name": "b"})).await,
        client.post(&format!("{path}/rotate-key"), json!({})).await,
        client.delete(path).await,
    ];
    for response in responses {
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    }
}

/// A management key must not gain permissions of an application through a proxy.
///
/// Covers 29.11.
#[tokio::test]
async fn only_administrators_give_a_proxy_an_application() {
    use Permission::{ProxyCreate, ProxyRead, ProxyUpdate};
    let fixture = Fixture::start().await;
    let granted = grants(&[ProxyCreate, ProxyRead, ProxyUpdate]);
    let limited = manager_with(&fixture.vault, &fixture.tenant, granted).await;
    let with_application = |mut body: Value| {
        body["application"] = json!({"id": fixture.application.application});
        body
    };

    let created = limited
        .post("/proxies", with_application(fixture.new_proxy()))
        .await;
    assert_eq!(created.status, StatusCode::FORBIDDEN);
    assert_eq!(
        limited.post("/proxies", fixture.new_proxy()).await.status,
        StatusCode::CREATED
    );

    let proxy = fixture.create_with_application(json!({})).await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
    let url = json!({"destination_url": "https://evil.example.com"});
    for response in [
        limited.put(&path, fixture.new_proxy()).await,
        limited
            .put(&path, with_application(fixture.new_proxy()))
            .await,
        limited.patch(&path, url).await,
        limited.post(&format!("{path}/rotate-key"), json!({})).await,
    ] {
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{}", response.body);
    }
    assert_eq!(fixture.manager.get(&path).await.body, proxy);

    // An application of another tenant is unknown.
    let other = fixture.vault.tenant().await;
    let private = ApplicationKind::Private;
    let foreign = fixture
        .vault
        .holder(&other, private, grants(&[Permission::TokenCreate]))
        .await;
    let mut new = fixture.new_proxy();
    new["application"] = json!({"id": foreign.application});
    let rejected = fixture.manager.post("/proxies", new).await;
    assert_eq!(rejected.refused(), ["application.id"]);
}

/// Covers 29.12.
#[tokio::test]
async fn a_rotated_key_replaces_the_old_one_at_once() {
    let fixture = Fixture::start().await;
    let proxy = fixture.create(json!({})).await;
    let path = format!("/proxies/{}/rotate-key", proxy["id"].as_str().unwrap());
    let before = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(before.status, StatusCode::OK, "{}", before.body);

    let rotated = fixture.manager.post(&path, json!({})).await;

    assert_eq!(rotated.status, StatusCode::OK);
    assert_ne!(rotated.body["key"], proxy["key"]);
    assert_eq!(rotated.body["id"], proxy["id"]);
    let old = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert!(old.status.is_client_error(), "{}", old.status);
    assert_eq!(old.header("bt-proxy-destination-status"), "");
    let new = fixture
        .invoke(&fixture.caller, &rotated.body, json!({}))
        .await;
    assert_eq!(new.status, StatusCode::OK);
    assert_eq!(fixture.destination.received().len(), 2);
}

/// Covers 29.13.
#[tokio::test]
async fn changes_of_a_proxy_are_in_the_audit_log() {
    let fixture = Fixture::start().await;
    let proxy = fixture.create(json!({})).await;
    let id = proxy["id"].as_str().unwrap();
    let path = format!("/proxies/{id}");
    fixture.manager.put(&path, fixture.new_proxy()).await;
    fixture
        .manager
        .post(&format!("{path}/rotate-key"), json!({}))
        .await;
    fixture.manager.delete(&path).await;

    let logs = fixture
        .manager
        .get(&format!("/logs?entity_type=proxy&entity_id={id}"))
        .await;

    let mut operations: Vec<&str> = logs
        .items()
        .iter()
        .map(|entry| entry["operation"].as_str().unwrap())
        .collect();
    operations.sort_unstable();
    assert_eq!(operations, ["create", "delete", "update", "update"]);
}
