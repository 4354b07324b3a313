//! Tokens and intents created from encrypted data.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom::{ids, jobs};
use cloakroom_testkit::{encrypt, everything, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{create_encrypted, fixture, manager, path_of};

/// Covers 2.21, 16.9, 16.10.
#[tokio::test]
async fn encrypted_data_creates_the_same_token_as_plain_data() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let data = r#"{"number":"4242424242424242","expiration_month":12,"cvc":"123","n":1.50}"#;

    let plain = json!({"type": "card", "data": serde_json::from_str::<Value>(data).unwrap()});
    let mut encrypted = json!({"type": "card", "encrypted": encrypt(&key, data), "data": null});
    encrypted["metadata"] = json!({"order": "17"});
    let plain = fixture.client.post("/tokens", plain).await;
    let encrypted = fixture.client.post("/tokens", encrypted).await;

    assert_eq!(encrypted.status, StatusCode::CREATED, "{}", encrypted.body);
    let path = format!("/tokens/{}", encrypted.id());
    let read = fixture.client.get(&path).await;
    for name in ["data", "card", "fingerprint", "containers", "mask", "type"] {
        assert_eq!(encrypted.body[name], plain.body[name], "{name}");
        assert_eq!(read.body[name], plain.body[name], "{name}");
    }
    assert_eq!(read.body["metadata"], json!({"order": "17"}));
    assert_eq!(read.body.get("encrypted"), None);
    let extras = json!({"deduplicated": false, "decrypted_payload": true});
    assert_eq!(encrypted.body["_extras"], extras);
    assert_eq!(plain.body["_extras"], json!({"deduplicated": false}));
}

/// Covers 16.10.
#[tokio::test]
async fn decrypted_data_is_validated_by_its_type() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let wrong = encrypt(&key, r#"{"number":"4242424242424241"}"#);
    let new = json!({"type": "card", "encrypted": wrong});
    let rejected = fixture.client.post("/tokens", new).await;
    assert_eq!(rejected.refused(), ["data.number"]);
    for (plaintext, attribute) in [("null", "data"), ("", "encrypted")] {
        let rejected = create_encrypted(&fixture.client, &encrypt(&key, plaintext)).await;
        assert_eq!(rejected.refused(), [attribute], "{plaintext}");
    }
}

/// Covers 11.15, 16.11.
#[tokio::test]
async fn elements_of_a_document_may_be_encrypted() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let document = json!({
        "name": "Ada",
        "card": {"type": "card_number", "encrypted": encrypt(&key, r#""4242424242424242""#)},
        "list": [{"type": "token", "data": 1}, {"type": "token", "encrypted": encrypt(&key, "[2]")}],
    });

    let response = fixture.client.post("/tokenize", document).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let (card, list) = (&response.body["card"], &response.body["list"]);
    assert_eq!(card["data"], "4242424242424242");
    assert_eq!(list[1]["data"], json!([2]));
    let extras =
        [card, &list[0], &list[1]].map(|token| token["_extras"]["decrypted_payload"].clone());
    assert_eq!(extras, [json!(true), Value::Null, json!(true)]);
    // All validation errors are returned at once.
    let invalid = json!([
        {"type": "card", "encrypted": encrypt(&key, r#"{"number":"1"}"#)},
        {"type": "card", "encrypted": "e30"},
        {"type": "token", "data": 1, "encrypted": "e30"},
        {"type": "nonsense", "data": 1},
    ]);
    let before = fixture.count_tokens().await;
    let rejected = fixture.client.post("/tokenize", invalid).await;
    let errors = [
        "[0].data.number",
        "[1].encrypted",
        "[2].encrypted",
        "[3].type",
    ];
    assert_eq!(rejected.refused(), errors);
    assert_eq!(fixture.count_tokens().await, before);
}

/// Covers 16.22.
#[tokio::test]
async fn an_intent_may_be_created_from_encrypted_data() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let granted = grants(&[Permission::TokenIntentCreate]);
    let client = fixture.vault.client(&fixture.tenant, granted).await;
    let card = encrypt(&key, r#"{"number":"4242424242424242"}"#);

    let new = json!({"type": "card", "encrypted": card});
    let intent = client.post("/token-intents", new).await;
    let both = json!({"type": "card", "encrypted": card, "data": {"number": "4242424242424242"}});
    let both = client.post("/token-intents", both).await;
    let invalid = json!({"type": "nonsense", "encrypted": "e30"});
    let invalid = client.post("/token-intents", invalid).await;
    let neither = client.post("/token-intents", json!({"type": "card"})).await;
    let converted = json!({"token_intent_id": intent.id()});
    let converted = fixture.client.post("/tokens", converted).await;

    assert_eq!(intent.status, StatusCode::CREATED, "{}", intent.body);
    assert_eq!(intent.body["card"]["last4"], "4242");
    assert_eq!(
        converted.body["data"],
        json!({"number": "4242424242424242"})
    );
    assert_eq!(converted.body["_extras"], json!({"deduplicated": false}));
    assert_eq!(both.refused(), ["encrypted"]);
    assert_eq!(invalid.refused(), ["encrypted", "type"]);
    assert_eq!(neither.refused(), ["data"]);
}

/// Covers 16.12, 16.13.
#[tokio::test]
async fn encrypted_data_is_accepted_by_creates_only() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let encrypted = encrypt(&key, "1");

    let both = json!({"type": "token", "data": 1, "encrypted": encrypted});
    let both = fixture.client.post("/tokens", both).await;
    let intent = ids::new_uuid();
    let converted = json!({"token_intent_id": intent, "encrypted": encrypted});
    let converted = fixture.client.post("/tokens", converted).await;
    let untyped = json!({"encrypted": encrypted});
    let untyped = fixture.client.post("/tokens", untyped).await;
    let created = create_encrypted(&fixture.client, &encrypted).await;
    let path = format!("/tokens/{}", created.id());
    let patch = json!({"encrypted": encrypt(&key, "2")});
    let patched = fixture.client.patch(&path, patch).await;

    assert_eq!(both.refused(), ["encrypted"]);
    assert_eq!(converted.refused(), ["encrypted"]);
    assert_eq!(untyped.refused(), ["type"]);
    assert_eq!(patched.status, StatusCode::OK);
    assert_eq!(patched.body["data"], 1);
    assert_eq!(patched.body["_extras"], json!({"deduplicated": false}));
}

/// Covers 16.14, 16.17, 16.18.
#[tokio::test]
async fn keys_decrypt_for_their_tenant_until_expired_or_deleted() {
    let fixture = fixture().await;
    let second = fixture.vault.second_node().await;
    let (deleted, expired) = (fixture.create_key().await, fixture.create_key().await);
    let other_tenant = fixture.vault.tenant().await;
    let foreign = manager(&fixture.vault, &other_tenant)
        .await
        .post("/keys", json!({}))
        .await;
    let unknown = json!({"key_id": ids::new_uuid(), "public_key_pem": deleted["public_key_pem"]});
    for key in [&deleted, &expired] {
        let created = create_encrypted(&fixture.client, &encrypt(key, "1")).await;
        assert_eq!(created.status, StatusCode::CREATED);
    }

    fixture.manager.delete(&path_of(&deleted)).await;
    let id = expired["id"].as_str().unwrap();
    let expire = format!("update client_key set expires_at = now() where key_id = '{id}'");
    assert_eq!(fixture.execute(&expire).await, 1);

    for key in [&deleted, &expired, &foreign.body, &unknown] {
        for node in [&fixture.vault, &second] {
            let client = node
                .client(&fixture.tenant, everything(Transform::Reveal))
                .await;
            let response = create_encrypted(&client, &encrypt(key, "1")).await;
            assert_eq!(response.refused(), ["encrypted"], "{key}");
        }
    }
    for (method, status) in [(Method::GET, 404), (Method::DELETE, 404)] {
        let request = fixture.manager.request(method, &path_of(&expired));
        assert_eq!(fixture.manager.send(request).await.status.as_u16(), status);
    }
    assert_eq!(fixture.manager.get("/keys").await.body, json!([]));
    // The sweep deletes expired keys and nothing else.
    jobs::sweep_once(&fixture.vault.vault, ids::new_uuid())
        .await
        .unwrap();
    let database = fixture.vault.database.connect().await;
    let remaining = database
        .query("select key_id from client_key", &[])
        .await
        .unwrap();
    let remaining: Vec<String> = remaining
        .iter()
        .map(|row| row.get::<_, uuid::Uuid>(0).to_string())
        .collect();
    assert_eq!(remaining, [foreign.id()]);
}

/// Covers 16.23, 16.24.
#[tokio::test]
async fn a_bound_key_decrypts_for_its_application_and_container_only() {
    let fixture = fixture().await;
    let private = ApplicationKind::Private;
    let owner = everything(Transform::Reveal);
    let owner = fixture.vault.holder(&fixture.tenant, private, owner).await;
    let application = owner.application.to_string();
    let owner = fixture.vault.client_with(Some(&owner.key));
    let bound = json!({"application_id": application, "container": "/PCI/"});
    let key = fixture.manager.post("/keys", bound).await;
    assert_eq!(key.status, StatusCode::CREATED, "{}", key.body);
    assert_eq!(key.body["application_id"], application);
    assert_eq!(key.body["container"], "/pci/");
    let read = fixture.manager.get(&path_of(&key.body)).await;
    assert_eq!(read.body["application_id"], application);
    assert_eq!(read.body["container"], "/pci/");
    let encrypted = encrypt(&key.body, r#"{"number":"4242424242424242"}"#);
    let new = |container: &str| json!({"type": "card", "encrypted": encrypted, "containers": [container]});

    let allowed = [
        new("/pci/"),
        new("/pci/eu/"),
        json!({"type": "card", "encrypted": encrypted}),
    ];
    for new in allowed {
        let created = owner.post("/tokens", new.clone()).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{new}: {}",
            created.body
        );
        let stolen = fixture.client.post("/tokens", new.clone()).await;
        assert_eq!(stolen.refused(), ["encrypted"], "{new}");
    }
    for container in ["/", "/mine/", "/pcix/"] {
        let rejected = owner.post("/tokens", new(container)).await;
        assert_eq!(rejected.refused(), ["encrypted"], "{container}");
    }
    let document = json!({"a": new("/mine/")});
    let rejected = owner.post("/tokenize", document).await;
    assert_eq!(rejected.refused(), ["a.encrypted"]);
    // An intent has no container and can be converted into a token in any.
    let intents = grants(&[Permission::TokenIntentCreate]);
    let intents = fixture.vault.client(&fixture.tenant, intents).await;
    let intent = json!({"type": "card", "encrypted": encrypted});
    let rejected = intents.post("/token-intents", intent).await;
    assert_eq!(rejected.refused(), ["encrypted"]);
    // A key whose binding was removed by SQL decrypts nothing.
    fixture
        .execute("update client_key set application_id = null, container = null")
        .await;
    let response = owner.post("/tokens", new("/pci/")).await;
    assert_eq!(response.body["code"], "integrity_error");
}
