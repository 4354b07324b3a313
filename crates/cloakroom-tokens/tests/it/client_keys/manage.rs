//! Creating, listing, reading and deleting client encryption keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::ids;
use cloakroom_testkit::{TestResponse, encrypt, grants};
use http::{Method, StatusCode};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{create_encrypted, fixture, path_of};

/// Covers 16.2, 16.3, 16.4.
#[tokio::test]
async fn a_new_key_is_returned_in_both_spellings_with_its_public_key() {
    let fixture = fixture().await;

    let created = fixture
        .manager
        .post_text("/keys", "{}", "application/json-patch+json")
        .await;

    assert_eq!(created.status, StatusCode::CREATED);
    let mut names: Vec<&String> = created.body.as_object().unwrap().keys().collect();
    names.sort();
    let spellings = [
        "expiresAt",
        "expires_at",
        "id",
        "key_id",
        "publicKeyPEM",
        "public_key_pem",
    ];
    assert_eq!(names, spellings);
    let body = &created.body;
    assert_eq!(body["id"], body["key_id"]);
    assert_eq!(body["publicKeyPEM"], body["public_key_pem"]);
    assert_eq!(body["expiresAt"], body["expires_at"]);
    let id = uuid::Uuid::parse_str(&created.id()).unwrap();
    assert_eq!(id.get_version_num(), 4);
    let location = format!("{}/keys/{id}", fixture.vault.base_url);
    assert_eq!(created.header("location"), location);
    let pem = body["public_key_pem"].as_str().unwrap();
    let lines: Vec<&str> = pem.split('\n').collect();
    let [first, text, last] = lines[..] else {
        panic!("{pem}");
    };
    assert_eq!(first, "-----BEGIN PUBLIC KEY-----");
    assert_eq!(last, "-----END PUBLIC KEY-----");
    assert_eq!(STANDARD.decode(text).unwrap().len(), 32);
}

/// Covers 16.5.
#[tokio::test]
async fn keys_expire_after_ninety_days_or_at_the_requested_time() {
    let fixture = fixture().await;
    let now = fixture.vault.vault.clock.now().await.unwrap();
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap();
    let expiry_of = |response: &TestResponse| -> Timestamp {
        response.body["expires_at"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };

    for body in ["{}", r#"{"expires_at": null, "nonsense": 1}"#, ""] {
        let created = fixture
            .manager
            .post_text("/keys", body, "application/json")
            .await;
        assert_eq!(created.status, StatusCode::CREATED, "{body}");
        let late = expiry_of(&created).duration_since(now + (90 * 24).hours());
        assert!(late.as_secs().abs() < 60, "{late}");
    }
    let without_type = fixture.manager.request(Method::POST, "/keys");
    let without_type = fixture.manager.send(without_type).await;
    assert_eq!(without_type.status, StatusCode::CREATED);

    let tomorrow = now + 24.hours();
    let created = fixture
        .manager
        .post("/keys", json!({"expires_at": tomorrow.to_string()}))
        .await;
    assert_eq!(expiry_of(&created), tomorrow);
}

/// Covers 16.5.
#[tokio::test]
async fn invalid_expiries_and_bodies_are_rejected() {
    let fixture = fixture().await;
    let now = fixture.vault.vault.clock.now().await.unwrap();
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap();
    let in_a_year = now.to_zoned(TimeZone::UTC).checked_add(1.year()).unwrap();

    let day_too_late = in_a_year.checked_add(1.day()).unwrap().timestamp();
    let rejected = [
        json!(day_too_late.to_string()),
        json!((now - 1.second()).to_string()),
        json!("2020-01-01"),
        json!("soon"),
        json!(""),
    ];
    for expires_at in rejected {
        let response = fixture
            .manager
            .post("/keys", json!({"expires_at": expires_at}))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{expires_at}");
        assert_eq!(response.refused(), ["expires_at"], "{expires_at}");
    }
    for (body, media, status) in [
        ("{}", "text/plain", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("[]", "application/json", StatusCode::BAD_REQUEST),
        ("{", "application/json", StatusCode::BAD_REQUEST),
        (
            r#"{"expires_at": 7}"#,
            "application/json",
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let response = fixture.manager.post_text("/keys", body, media).await;
        assert_eq!(response.status, status, "{body} {media}");
    }
}

/// Covers 16.6, 16.7, 16.8.
#[tokio::test]
async fn keys_are_listed_and_read_without_their_public_key() {
    let fixture = fixture().await;
    assert_eq!(fixture.manager.get("/keys").await.body, json!([]));
    let (first, second) = (fixture.create_key().await, fixture.create_key().await);
    let shown = |key: &Value| {
        let mut shown = key.clone();
        for name in ["publicKeyPEM", "public_key_pem"] {
            shown.as_object_mut().unwrap().remove(name).unwrap();
        }
        shown
    };

    let listed = fixture.manager.get("/keys").await;
    let read = fixture.manager.get(&path_of(&first)).await;
    let deleted = fixture.manager.delete(&path_of(&first)).await;

    assert_eq!(listed.status, StatusCode::OK);
    assert_eq!(listed.body, json!([shown(&second), shown(&first)]));
    assert_eq!((read.status, &read.body), (StatusCode::OK, &shown(&first)));
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert!(deleted.bytes.is_empty());
    assert_eq!(
        fixture.manager.get("/keys").await.body,
        json!([shown(&second)])
    );
    let unknown = fixture
        .manager
        .get(&format!("/keys/{}", ids::new_uuid()))
        .await;
    for path in [path_of(&first), "/keys/nonsense".to_owned()] {
        for method in [Method::GET, Method::DELETE] {
            let request = fixture.manager.request(method.clone(), &path);
            let response = fixture.manager.send(request).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{method} {path}");
            assert_eq!(response.body, unknown.body, "{method} {path}");
        }
    }
}

/// Covers 16.21.
#[tokio::test]
async fn key_operations_are_recorded_in_the_audit_log() {
    let fixture = fixture().await;
    let granted = grants(&[Permission::LogRead]);
    let reader = fixture
        .vault
        .holder(&fixture.tenant, ApplicationKind::Management, granted)
        .await;
    let key = fixture.create_key().await;

    fixture.manager.get(&path_of(&key)).await;
    create_encrypted(&fixture.client, &encrypt(&key, "1")).await;
    fixture.manager.get("/keys").await;
    fixture.manager.delete(&path_of(&key)).await;
    fixture.manager.delete(&path_of(&key)).await;
    fixture.vault.vault.audit.flush().await.unwrap();

    let logs = format!(
        "/logs?entity_type=key&entity_id={}",
        key["id"].as_str().unwrap()
    );
    let logs = fixture
        .vault
        .client_with(Some(&reader.key))
        .get(&logs)
        .await;
    let mut operations: Vec<&str> = logs
        .items()
        .iter()
        .map(|entry| entry["operation"].as_str().unwrap())
        .collect();
    operations.sort_unstable();
    assert_eq!(operations, ["create", "delete", "read"]);
}

/// Covers 16.20.
#[tokio::test]
async fn a_tenant_has_at_most_one_thousand_keys() {
    let fixture = fixture().await;
    let one_more = fixture.create_key().await;
    let fill = "insert into client_key
            (tenant_id, key_id, public_key, sealed, created_by, expires_at)
        select 1, gen_random_uuid(), '', '', gen_random_uuid(), now() + interval '1 hour'
        from generate_series(1, 999)";
    assert_eq!(fixture.execute(fill).await, 999);

    let rejected = fixture.manager.post("/keys", json!({})).await;
    fixture.manager.delete(&path_of(&one_more)).await;
    let created = fixture.manager.post("/keys", json!({})).await;

    assert_eq!(rejected.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(created.status, StatusCode::CREATED);
}

/// A client that encrypts to a replaced public key would disclose the data to the attacker.
#[tokio::test]
async fn keys_modified_by_sql_are_not_returned() {
    let attacks = [
        "update client_key set public_key = sha256('another')",
        "update client_key set expires_at = expires_at + interval '1 year'",
        "update client_key set container = '/another/'",
        "update client_key set application_id = gen_random_uuid()",
    ];
    for attack in attacks {
        let fixture = fixture().await;
        let key = fixture.create_key().await;
        let public = grants(&[Permission::TokenCreate]);
        let kind = ApplicationKind::Public;
        let browser = fixture.vault.holder(&fixture.tenant, kind, public).await;
        let id = key["id"].as_str().unwrap();
        let of_elements = format!(
            "/web-elements/2.17.0/hosted-elements/keys/{id}?apiKey={}",
            browser.key
        );
        let anonymous = fixture.vault.client_with(None);
        assert_eq!(anonymous.get(&of_elements).await.status, StatusCode::OK);

        assert_eq!(fixture.execute(attack).await, 1);

        for response in [
            fixture.manager.get(&path_of(&key)).await,
            fixture.manager.get("/keys").await,
            anonymous.get(&of_elements).await,
        ] {
            assert_eq!(
                response.status,
                StatusCode::INTERNAL_SERVER_ERROR,
                "{attack}: {}",
                response.body
            );
        }
    }
}

/// Covers 16.23, 16.24.
#[tokio::test]
async fn invalid_bindings_are_rejected() {
    let fixture = fixture().await;

    for (body, name) in [
        (json!({"application_id": ids::new_uuid()}), "application_id"),
        (json!({"application_id": "mine"}), "application_id"),
        (json!({"container": "pci"}), "container"),
    ] {
        let rejected = fixture.manager.post("/keys", body).await;
        assert_eq!(rejected.refused(), [name]);
    }
}
