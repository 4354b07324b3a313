//! Creating applications: the key in the response, and validation.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{TestVault, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    UNKNOWN_ID, create_application, create_status, manager, new_application, new_application_with,
    rule,
};

/// Covers 13.2, 13.3, 13.4.
#[tokio::test]
async fn a_new_application_returns_its_key_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let own = manager.get("/applications/key").await.id();

    let mut new = new_application();
    new["rules"] = json!([rule(1, "/PCI/", "mask", &["token:read", "token:search"])]);
    new["unknown"] = json!("ignored");
    new["expires_at"] = json!(null);
    let created = manager.post("/applications", new).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let id = created.id();
    let location = format!("{}/applications/{id}", vault.base_url);
    assert_eq!(created.header("location"), location);
    let key = created.body["key"].as_str().unwrap().to_owned();
    let (prefix, random) = key.split_at("key_test_us_pvt_".len());
    assert_eq!(prefix, "key_test_us_pvt_");
    assert!(
        random.len() == 55 && random.as_bytes()[22] == b'.',
        "{random}"
    );
    assert_eq!(created.body["keys"].as_array().unwrap().len(), 1);
    assert_eq!(created.body["keys"][0]["key"], key);
    assert_eq!(created.body["keys"][0]["created_by"], own);
    assert_eq!(created.body["created_by"], own);
    for id in [&id, created.body["keys"][0]["id"].as_str().unwrap()] {
        assert_eq!(id.parse::<uuid::Uuid>().unwrap().get_version_num(), 4);
    }
    insta::assert_snapshot!(
        created.told(&["id", "tenant_id", "key", "keys", "created_by", "created_at"]), @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "name": "Checkout",
      "key": "[key]",
      "keys": "[keys]",
      "type": "private",
      "permissions": [
        "token:create"
      ],
      "rules": [
        {
          "description": "A rule",
          "priority": 1,
          "container": "/pci/",
          "transform": "mask",
          "permissions": [
            "token:read",
            "token:search"
          ]
        }
      ],
      "created_by": "[created_by]",
      "created_at": "[created_at]"
    }
    "#);
    assert_eq!(create_status(&vault, &key).await, StatusCode::CREATED);
}

/// Covers 13.3.
#[tokio::test]
async fn the_key_is_neither_returned_later_nor_stored() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let created = manager.post("/applications", new_application()).await;
    let (id, key) = (
        created.id(),
        created.body["key"].as_str().unwrap().to_owned(),
    );
    let random = key.rsplit('_').next().unwrap();

    let mut expected = created.body.clone();
    expected.as_object_mut().unwrap().shift_remove("key");
    let first = expected["keys"][0].as_object_mut().unwrap();
    first.shift_remove("key");
    assert_eq!(
        first.keys().collect::<Vec<_>>(),
        ["id", "tenant_id", "version", "created_by", "created_at"]
    );
    assert_eq!(first["version"], "2");
    assert_eq!(first["tenant_id"], tenant.id.uuid.to_string());
    let path = format!("/applications/{id}");
    let key_client = vault.client_with(Some(&key));
    assert_eq!(manager.get(&path).await.body, expected);
    assert_eq!(key_client.get("/applications/key").await.body, expected);
    let listed = manager.get("/applications").await;
    assert_eq!(listed.items()[0], expected);
    let stored = vault.database.connect().await;
    let stored = stored
        .query("select application_key::text from application_key", &[])
        .await
        .unwrap();
    let rows: String = stored.iter().map(|row| row.get::<_, String>(0)).collect();
    assert!(!rows.contains(&random[10..22]) && !rows.contains(&random[23..]));
}

/// Covers 13.3, 13.4.
#[tokio::test]
async fn keys_name_the_application_type_and_are_optional() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;

    let kinds = [
        ("private", "token:read", "key_test_us_pvt_", 55),
        ("public", "token:create", "key_test_us_pub_", 22),
        ("management", "log:read", "key_test_us_mgt_", 55),
    ];
    for (kind, permission, prefix, length) in kinds {
        let new = new_application_with(
            json!({"type": kind, "permissions": [permission], "create_key": true}),
        );
        let application = create_application(&manager, new).await;
        let random = application.key.strip_prefix(prefix).expect(kind);
        assert_eq!(random.len(), length, "{kind}");
        let key_client = vault.client_with(Some(&application.key));
        assert_eq!(key_client.get("/applications/key").await.body["type"], kind);
    }
    let keyless = new_application_with(json!({"create_key": false}));
    let keyless = manager.post("/applications", keyless).await;
    assert_eq!(keyless.status, StatusCode::CREATED);
    assert_eq!(keyless.body["keys"], json!([]));
    assert_eq!(keyless.body.get("key"), None);
    let path = format!("/applications/{}/keys", keyless.id());
    assert_eq!(manager.get(&path).await.body, json!([]));
}

/// Invalid replacements for members of a valid body, and the attributes that the 400 must name.
fn invalid_changes() -> Vec<(Value, &'static str)> {
    let valid = rule(1, "/", "mask", &["token:read"]);
    let duplicate = rule(1, "/a/", "mask", &["token:read"]);
    vec![
        (json!({"name": null}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "n".repeat(201)}), "name"),
        (json!({"name": "two\nlines"}), "name"),
        (json!({"name": "card 4242 4242 4242 4242"}), "name"),
        (json!({"type": null}), "type"),
        (json!({"type": "expiring"}), "type"),
        (json!({"type": "Private"}), "type"),
        (json!({"permissions": []}), "permissions"),
        (json!({"permissions": null}), "permissions"),
        (json!({"permissions": ["token:pci:read"]}), "permissions"),
        (json!({"permissions": ["token:juggle"]}), "permissions"),
        (json!({"permissions": ["application:read"]}), "permissions"),
        (
            json!({"permissions": vec!["token:read"; 51]}),
            "permissions",
        ),
        (json!({"permissions": "token:read"}), "permissions"),
        (json!({"permissions": [1]}), "permissions[0]"),
        (
            json!({"type": "public", "permissions": ["token:read"]}),
            "permissions",
        ),
        (
            json!({"type": "management", "permissions": ["log:read"], "rules": [valid]}),
            "rules",
        ),
        (json!({"rules": [valid, duplicate]}), "rules[1].priority"),
        (
            json!({"rules": [rule(1, "/", "mask", &[])]}),
            "rules[0].permissions",
        ),
        (
            json!({"rules": [rule(1, "/", "mask", &["documents:read"])]}),
            "rules[0].permissions",
        ),
        (
            json!({"rules": [rule(1, "pci", "mask", &["token:read"])]}),
            "rules[0].container",
        ),
        (
            json!({"rules": [rule(1, "/", "blur", &["token:read"])]}),
            "rules[0].transform",
        ),
        (
            json!({"rules": [rule(0, "/", "mask", &["token:read"])]}),
            "rules[0].priority",
        ),
        (json!({"rules": [{"priority": "1"}]}), "rules[0].priority"),
        (json!({"rules": [[]]}), "rules[0]"),
        (json!({"create_key": "yes"}), "create_key"),
        (json!({"expires_at": "tomorrow"}), "expires_at"),
        (json!({"expires_at": "2020-01-01T00:00:00Z"}), "expires_at"),
        (
            json!({"name": "", "type": "expiring", "permissions": ["x"], "expires_at": "x",
                "rules": [{"transform": "blur", "permissions": ["log:read"]}]}),
            "expires_at name permissions rules[0].container rules[0].description \
             rules[0].permissions rules[0].priority rules[0].transform type",
        ),
    ]
}

/// Covers 13.5, 13.6, 13.7, 13.8.
#[tokio::test]
async fn all_validation_errors_are_returned_at_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    for (changes, expected) in invalid_changes() {
        let rejected = manager
            .post("/applications", new_application_with(changes.clone()))
            .await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{changes}");
        let mut paths = rejected.refused();
        paths.sort_unstable();
        assert_eq!(paths.join(" "), expected, "{changes}: {}", rejected.body);
        let text = String::from_utf8(rejected.bytes).unwrap();
        assert!(!text.contains("juggle") && !text.contains("4242"), "{text}");
    }

    let longest = new_application_with(
        json!({"name": "é".repeat(200), "permissions": vec!["token:read"; 50]}),
    );
    let longest = manager.post("/applications", longest).await;
    assert_eq!(longest.status, StatusCode::CREATED);
    assert_eq!(longest.body["permissions"], json!(["token:read"]));
    let webhooks =
        new_application_with(json!({"type": "management", "permissions": ["webhooks:read"]}));
    let webhooks = manager.post("/applications", webhooks).await;
    assert_eq!(webhooks.body["permissions"], json!(["webhook:read"]));
}

#[tokio::test]
async fn bodies_are_parsed_after_the_permission_check() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let cases = [
        ("text/plain", "{}", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/json", "{", StatusCode::BAD_REQUEST),
        ("application/json", "[]", StatusCode::BAD_REQUEST),
        ("application/json", "", StatusCode::BAD_REQUEST),
        (
            "application/merge-patch+json",
            "{}",
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (media, body, expected) in cases {
        let created = manager.post_text("/applications", body, media).await;
        let request = manager.request(Method::PUT, &format!("/applications/{UNKNOWN_ID}"));
        let request = request.header("content-type", media).body(body);
        let updated = manager.send(request).await;
        assert_eq!(created.status, expected, "{media} {body}");
        // The body is validated before the application is looked up.
        assert_eq!(updated.status, expected, "{media} {body}");
    }
    let reader = grants(&[Permission::ApplicationRead]);
    let reader = vault
        .holder(&tenant, ApplicationKind::Management, reader)
        .await;
    let reader = vault.client_with(Some(&reader.key));
    for (method, path) in [
        (Method::POST, "/applications".to_owned()),
        (Method::PUT, format!("/applications/{UNKNOWN_ID}")),
    ] {
        let request = reader.request(method.clone(), &path);
        let request = request.header("content-type", "text/plain").body("{");
        let rejected = reader.send(request).await;
        assert_eq!(rejected.status, StatusCode::FORBIDDEN, "{method} {path}");
    }
}
