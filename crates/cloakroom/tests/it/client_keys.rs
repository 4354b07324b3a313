//! Client encryption keys, and data that comes encrypted.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::{ids, jobs};
use http::{Method, StatusCode};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Lines, TestVault, encrypt, encrypt_with, everything, grants};

/// What is done to a header.
type Change = fn(&mut Value);

/// A tenant's manager of keys, and someone who keeps tokens there and sees them whole.
struct Stage {
    vault: TestVault,
    tenant: Tenant,
    manager: Client,
    client: Client,
}

async fn stage() -> Stage {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    Stage {
        manager: manager(&vault, &tenant).await,
        client: vault.client(&tenant, everything(Transform::Reveal)).await,
        vault,
        tenant,
    }
}

async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    use Permission::{KeysCreate, KeysDelete, KeysRead};
    let granted = grants(&[KeysCreate, KeysRead, KeysDelete]);
    let kind = ApplicationKind::Management;
    let holder = vault.holder(tenant, kind, granted).await;
    vault.client_with(Some(&holder.key))
}

impl Stage {
    async fn key(&self) -> Value {
        let created = self.manager.post("/keys", json!({})).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.body
    }

    async fn sql(&self, sql: &str) -> u64 {
        self.vault
            .database
            .connect()
            .await
            .execute(sql, &[])
            .await
            .unwrap()
    }

    async fn tokens(&self) -> i64 {
        let database = self.vault.database.connect().await;
        let row = database.query_one("select count(*) from token", &[]).await;
        row.unwrap().get(0)
    }
}

fn path_of(key: &Value) -> String {
    format!("/keys/{}", key["id"].as_str().unwrap())
}

async fn send(client: &Client, encrypted: &str) -> Answer {
    let new = json!({"type": "token", "encrypted": encrypted});
    client.post("/tokens", new).await
}

/// Covers 16.2, 16.3, 16.4.
#[tokio::test]
async fn a_new_key_is_told_in_both_spellings_with_its_public_half() {
    let stage = stage().await;

    let created = stage
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
    let location = format!("{}/keys/{id}", stage.vault.base_url);
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
async fn a_key_lives_for_a_year_or_until_its_client_says() {
    let stage = stage().await;
    let now = stage.vault.vault.audit.now().await.unwrap();
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap();
    let in_a_year = now.to_zoned(TimeZone::UTC).checked_add(1.year()).unwrap();
    let told = |answer: &Answer| -> Timestamp {
        answer.body["expires_at"].as_str().unwrap().parse().unwrap()
    };

    for body in ["{}", r#"{"expires_at": null, "nonsense": 1}"#, ""] {
        let created = stage
            .manager
            .post_text("/keys", body, "application/json")
            .await;
        assert_eq!(created.status, StatusCode::CREATED, "{body}");
        let late = told(&created).duration_since(in_a_year.timestamp());
        assert!(late.as_secs().abs() < 60, "{late}");
    }
    let without_type = stage.manager.request(Method::POST, "/keys");
    let without_type = stage.manager.send(without_type).await;
    assert_eq!(without_type.status, StatusCode::CREATED);

    let tomorrow = now + 24.hours();
    let created = stage
        .manager
        .post("/keys", json!({"expires_at": tomorrow.to_string()}))
        .await;
    assert_eq!(told(&created), tomorrow);

    let day_too_late = in_a_year.checked_add(1.day()).unwrap().timestamp();
    let refused = [
        json!(day_too_late.to_string()),
        json!((now - 1.second()).to_string()),
        json!("2020-01-01"),
        json!("soon"),
        json!(""),
    ];
    for expires_at in refused {
        let answer = stage
            .manager
            .post("/keys", json!({"expires_at": expires_at}))
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{expires_at}");
        assert_eq!(answer.refused(), ["expires_at"], "{expires_at}");
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
        let answer = stage.manager.post_text("/keys", body, media).await;
        assert_eq!(answer.status, status, "{body} {media}");
    }
}

/// Covers 16.6, 16.7, 16.8.
#[tokio::test]
async fn keys_are_listed_and_read_without_their_public_half() {
    let stage = stage().await;
    assert_eq!(stage.manager.get("/keys").await.body, json!([]));
    let (first, second) = (stage.key().await, stage.key().await);
    let shown = |key: &Value| {
        let mut shown = key.clone();
        for name in ["publicKeyPEM", "public_key_pem"] {
            shown.as_object_mut().unwrap().remove(name).unwrap();
        }
        shown
    };

    let listed = stage.manager.get("/keys").await;
    let read = stage.manager.get(&path_of(&first)).await;
    let deleted = stage.manager.delete(&path_of(&first)).await;

    assert_eq!(listed.status, StatusCode::OK);
    assert_eq!(listed.body, json!([shown(&second), shown(&first)]));
    assert_eq!((read.status, &read.body), (StatusCode::OK, &shown(&first)));
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert!(deleted.bytes.is_empty());
    assert_eq!(
        stage.manager.get("/keys").await.body,
        json!([shown(&second)])
    );
    let nobody = stage
        .manager
        .get(&format!("/keys/{}", ids::new_uuid()))
        .await;
    for path in [path_of(&first), "/keys/nonsense".to_owned()] {
        for method in [Method::GET, Method::DELETE] {
            let request = stage.manager.request(method.clone(), &path);
            let answer = stage.manager.send(request).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
            assert_eq!(answer.body, nobody.body, "{method} {path}");
        }
    }
}

/// Covers 2.21, 16.9, 16.10.
#[tokio::test]
async fn encrypted_data_becomes_a_token_like_any_other() {
    let stage = stage().await;
    let key = stage.key().await;
    let data = r#"{"number":"4242424242424242","expiration_month":12,"cvc":"123","n":1.50}"#;

    let plain = json!({"type": "card", "data": serde_json::from_str::<Value>(data).unwrap()});
    let mut hidden = json!({"type": "card", "encrypted": encrypt(&key, data), "data": null});
    hidden["metadata"] = json!({"order": "17"});
    let plain = stage.client.post("/tokens", plain).await;
    let hidden = stage.client.post("/tokens", hidden).await;

    assert_eq!(hidden.status, StatusCode::CREATED, "{}", hidden.body);
    let path = format!("/tokens/{}", hidden.id());
    let read = stage.client.get(&path).await;
    for name in ["data", "card", "fingerprint", "containers", "mask", "type"] {
        assert_eq!(hidden.body[name], plain.body[name], "{name}");
        assert_eq!(read.body[name], plain.body[name], "{name}");
    }
    assert_eq!(read.body["metadata"], json!({"order": "17"}));
    assert_eq!(read.body.get("encrypted"), None);
    let told = json!({"deduplicated": false, "decrypted_payload": true});
    assert_eq!(hidden.body["_extras"], told);
    assert_eq!(plain.body["_extras"], json!({"deduplicated": false}));
    // The rules of the type hold for what was hidden as well.
    let wrong = encrypt(&key, r#"{"number":"4242424242424241"}"#);
    let new = json!({"type": "card", "encrypted": wrong});
    let refused = stage.client.post("/tokens", new).await;
    assert_eq!(refused.refused(), ["data.number"]);
    for (plaintext, attribute) in [("null", "data"), ("", "encrypted")] {
        let refused = send(&stage.client, &encrypt(&key, plaintext)).await;
        assert_eq!(refused.refused(), [attribute], "{plaintext}");
    }
}

/// Covers 11.15, 16.11.
#[tokio::test]
async fn elements_of_a_document_may_come_encrypted() {
    let stage = stage().await;
    let key = stage.key().await;
    let document = json!({
        "name": "Ada",
        "card": {"type": "card_number", "encrypted": encrypt(&key, r#""4242424242424242""#)},
        "list": [{"type": "token", "data": 1}, {"type": "token", "encrypted": encrypt(&key, "[2]")}],
    });

    let answer = stage.client.post("/tokenize", document).await;

    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let (card, list) = (&answer.body["card"], &answer.body["list"]);
    assert_eq!(card["data"], "4242424242424242");
    assert_eq!(list[1]["data"], json!([2]));
    let extras =
        [card, &list[0], &list[1]].map(|token| token["_extras"]["decrypted_payload"].clone());
    assert_eq!(extras, [json!(true), Value::Null, json!(true)]);
    // All broken rules are told at once.
    let broken = json!([
        {"type": "card", "encrypted": encrypt(&key, r#"{"number":"1"}"#)},
        {"type": "card", "encrypted": "e30"},
        {"type": "token", "data": 1, "encrypted": "e30"},
        {"type": "nonsense", "data": 1},
    ]);
    let before = stage.tokens().await;
    let refused = stage.client.post("/tokenize", broken).await;
    let named = [
        "[0].data.number",
        "[1].encrypted",
        "[2].encrypted",
        "[3].type",
    ];
    assert_eq!(refused.refused(), named);
    assert_eq!(stage.tokens().await, before);
}

/// Covers 16.22.
#[tokio::test]
async fn an_intent_may_come_encrypted() {
    let stage = stage().await;
    let key = stage.key().await;
    let granted = grants(&[Permission::TokenIntentCreate]);
    let client = stage.vault.client(&stage.tenant, granted).await;
    let card = encrypt(&key, r#"{"number":"4242424242424242"}"#);

    let new = json!({"type": "card", "encrypted": card});
    let made = client.post("/token-intents", new).await;
    let both = json!({"type": "card", "encrypted": card, "data": {"number": "4242424242424242"}});
    let both = client.post("/token-intents", both).await;
    let broken = json!({"type": "nonsense", "encrypted": "e30"});
    let broken = client.post("/token-intents", broken).await;
    let neither = client.post("/token-intents", json!({"type": "card"})).await;
    let converted = json!({"token_intent_id": made.id()});
    let converted = stage.client.post("/tokens", converted).await;

    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.body["card"]["last4"], "4242");
    assert_eq!(
        converted.body["data"],
        json!({"number": "4242424242424242"})
    );
    assert_eq!(converted.body["_extras"], json!({"deduplicated": false}));
    assert_eq!(both.refused(), ["encrypted"]);
    assert_eq!(broken.refused(), ["encrypted", "type"]);
    assert_eq!(neither.refused(), ["data"]);
}

/// Covers 16.12, 16.13.
#[tokio::test]
async fn encrypted_data_is_an_alternative_for_creating_only() {
    let stage = stage().await;
    let key = stage.key().await;
    let encrypted = encrypt(&key, "1");

    let both = json!({"type": "token", "data": 1, "encrypted": encrypted});
    let both = stage.client.post("/tokens", both).await;
    let intent = ids::new_uuid();
    let converted = json!({"token_intent_id": intent, "encrypted": encrypted});
    let converted = stage.client.post("/tokens", converted).await;
    let untyped = json!({"encrypted": encrypted});
    let untyped = stage.client.post("/tokens", untyped).await;
    let created = send(&stage.client, &encrypted).await;
    let path = format!("/tokens/{}", created.id());
    let patch = json!({"encrypted": encrypt(&key, "2")});
    let patched = stage.client.patch(&path, patch).await;

    assert_eq!(both.refused(), ["encrypted"]);
    assert_eq!(converted.refused(), ["encrypted"]);
    assert_eq!(untyped.refused(), ["type"]);
    assert_eq!(patched.status, StatusCode::OK);
    assert_eq!(patched.body["data"], 1);
    assert_eq!(patched.body["_extras"], json!({"deduplicated": false}));
}

/// Covers 16.14, 16.15.
#[tokio::test]
async fn nothing_about_an_encrypted_value_may_be_changed() {
    let stage = stage().await;
    let key = stage.key().await;
    let lines = Lines::capture();
    let encrypted = encrypt(&key, r#"{"secret":"of nobody"}"#);
    let created = send(&stage.client, &encrypted).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let before = stage.tokens().await;

    let mut altered = Vec::new();
    let parts: Vec<&str> = encrypted.split('.').collect();
    for position in [0, 2, 3, 4] {
        let bytes = URL_SAFE_NO_PAD.decode(parts[position]).unwrap();
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let mut parts = parts.clone();
            let part = URL_SAFE_NO_PAD.encode(flipped);
            parts[position] = &part;
            altered.push(parts.join("."));
        }
        let mut parts = parts.clone();
        let shorter = URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() - 1]);
        parts[position] = &shorter;
        altered.push(parts.join("."));
    }
    // A header that says the same in other words is another header.
    let header = URL_SAFE_NO_PAD.decode(parts[0]).unwrap();
    let spaced = String::from_utf8(header).unwrap().replace(':', ": ");
    let mut respelled = parts.clone();
    let spaced = URL_SAFE_NO_PAD.encode(spaced);
    respelled[0] = &spaced;
    altered.push(respelled.join("."));
    altered.push(encrypted.replacen("..", ".AAAA.", 1));
    altered.push(format!("{encrypted}."));
    altered.push(parts[..4].join("."));
    altered.push(String::new());
    altered.push("a".repeat(3 * 1024 * 1024));

    let mut answers: Vec<Vec<u8>> = Vec::new();
    for text in &altered {
        let answer = send(&stage.client, text).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{text}");
        assert_eq!(answer.refused(), ["encrypted"], "{text}");
        answers.push(answer.bytes);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "they tell what was wrong");
    assert_eq!(stage.tokens().await, before);
    let told = lines.text();
    assert!(!told.contains("of nobody") && !told.contains(parts[3]));
}

/// Covers 16.14, 16.16.
#[tokio::test]
async fn only_the_one_kind_of_encryption_is_understood() {
    let stage = stage().await;
    let key = stage.key().await;
    // Each of these is encrypted correctly under its own header.
    let changes: [(&str, Change); 10] = [
        ("RSA", |header| header["alg"] = json!("RSA-OAEP")),
        ("wrapped", |header| header["alg"] = json!("ECDH-ES+A256KW")),
        ("direct", |header| header["alg"] = json!("dir")),
        ("another cipher", |header| {
            header["enc"] = json!("A256CBC-HS512")
        }),
        ("compressed", |header| header["zip"] = json!("DEF")),
        ("critical", |header| header["crit"] = json!(["exp"])),
        ("a party", |header| header["apu"] = json!("")),
        ("another curve", |header| {
            header["epk"]["crv"] = json!("X448")
        }),
        ("no key", |header| header["kid"] = Value::Null),
        ("a zero point", |header| {
            header["epk"]["x"] = json!("A".repeat(43))
        }),
    ];
    for (name, change) in changes {
        let answer = send(&stage.client, &encrypt_with(&key, "1", change)).await;
        assert_eq!(answer.refused(), ["encrypted"], "{name}");
    }
    let harmless = encrypt_with(&key, "1", |header| header["typ"] = json!("JWE"));
    let harmless = send(&stage.client, &harmless).await;
    assert_eq!(harmless.status, StatusCode::CREATED);
    // The limits of a body hold for what is hidden in it.
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    for plaintext in [&*deep, r#"{"a":1,"a":2}"#, "1 2", "{", "\u{1}", "nonsense"] {
        let answer = send(&stage.client, &encrypt(&key, plaintext)).await;
        assert_eq!(answer.refused(), ["encrypted"], "{plaintext}");
    }
}

/// Covers 16.14, 16.17, 16.18.
#[tokio::test]
async fn keys_open_for_their_tenant_until_they_expire_or_go() {
    let stage = stage().await;
    let second = stage.vault.second_node().await;
    let (deleted, expired) = (stage.key().await, stage.key().await);
    let stranger = stage.vault.tenant().await;
    let foreign = manager(&stage.vault, &stranger)
        .await
        .post("/keys", json!({}))
        .await;
    let nobodys = json!({"key_id": ids::new_uuid(), "public_key_pem": deleted["public_key_pem"]});
    for key in [&deleted, &expired] {
        let created = send(&stage.client, &encrypt(key, "1")).await;
        assert_eq!(created.status, StatusCode::CREATED);
    }

    stage.manager.delete(&path_of(&deleted)).await;
    let id = expired["id"].as_str().unwrap();
    let expire = format!("update client_key set expires_at = now() where key_id = '{id}'");
    assert_eq!(stage.sql(&expire).await, 1);

    for key in [&deleted, &expired, &foreign.body, &nobodys] {
        for node in [&stage.vault, &second] {
            let client = node
                .client(&stage.tenant, everything(Transform::Reveal))
                .await;
            let answer = send(&client, &encrypt(key, "1")).await;
            assert_eq!(answer.refused(), ["encrypted"], "{key}");
        }
    }
    for (method, status) in [(Method::GET, 404), (Method::DELETE, 404)] {
        let request = stage.manager.request(method, &path_of(&expired));
        assert_eq!(stage.manager.send(request).await.status.as_u16(), status);
    }
    assert_eq!(stage.manager.get("/keys").await.body, json!([]));
    // What is left of an expired key goes with the next sweep, and nothing else does.
    jobs::sweep_once(&stage.vault.vault, ids::new_uuid())
        .await
        .unwrap();
    let database = stage.vault.database.connect().await;
    let kept = database
        .query("select key_id from client_key", &[])
        .await
        .unwrap();
    let kept: Vec<String> = kept
        .iter()
        .map(|row| row.get::<_, uuid::Uuid>(0).to_string())
        .collect();
    assert_eq!(kept, [foreign.id()]);
}

/// Covers 16.19.
#[tokio::test]
async fn keys_that_were_changed_by_sql_open_nothing() {
    let attacks = [
        "update client_key set expires_at = expires_at + interval '1 year'",
        "update client_key set expires_at = expires_at - interval '1 day'",
        "update client_key set public_key = decode(repeat('01', 32), 'hex')",
        "update client_key set sealed = (select sealed from client_key where key_id = '{other}')
            where key_id = '{key}'",
        "update client_key set sealed = other.sealed, public_key = other.public_key,
                expires_at = other.expires_at
            from client_key other
            where client_key.key_id = '{key}' and other.key_id = '{other}'",
        "update client_key set sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1)",
        "update client_key set sealed = '\\x'",
        "update client_key set tenant_id = 2 where key_id = '{key}'",
    ];
    let stage = stage().await;
    let stranger = stage.vault.tenant().await;
    let stranger = stage
        .vault
        .client(&stranger, everything(Transform::Reveal))
        .await;
    for attack in attacks {
        let (key, other) = (stage.key().await, stage.key().await);
        // What the attacker can encrypt to is the key that it put in the place of the other.
        let mut meant = other.clone();
        meant["key_id"] = key["key_id"].clone();
        let texts = [encrypt(&key, "1"), encrypt(&meant, "1")];
        assert_eq!(
            send(&stage.client, &texts[0]).await.status,
            StatusCode::CREATED
        );
        let before = stage.tokens().await;
        let lines = Lines::capture();

        let sql = attack
            .replace("{key}", key["id"].as_str().unwrap())
            .replace("{other}", other["id"].as_str().unwrap());
        assert!(stage.sql(&sql).await >= 1, "{attack}");

        let moved = attack.contains("tenant_id");
        let client = if moved { &stranger } else { &stage.client };
        for text in &texts {
            let answer = send(client, text).await;
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{attack}");
            assert_eq!(answer.body["code"], "integrity_error", "{attack}");
        }
        assert_eq!(lines.count("a sealed value does not open"), 2, "{attack}");
        assert_eq!(stage.tokens().await, before, "{attack}");
        stage.sql("delete from client_key").await;
    }
}

/// Covers 16.21.
#[tokio::test]
async fn what_is_done_to_keys_is_recorded() {
    let stage = stage().await;
    let granted = grants(&[Permission::LogRead]);
    let reader = stage
        .vault
        .holder(&stage.tenant, ApplicationKind::Management, granted)
        .await;
    let key = stage.key().await;

    stage.manager.get(&path_of(&key)).await;
    send(&stage.client, &encrypt(&key, "1")).await;
    stage.manager.get("/keys").await;
    stage.manager.delete(&path_of(&key)).await;
    stage.manager.delete(&path_of(&key)).await;
    stage.vault.vault.audit.flush().await.unwrap();

    let logs = format!(
        "/logs?entity_type=key&entity_id={}",
        key["id"].as_str().unwrap()
    );
    let logs = stage.vault.client_with(Some(&reader.key)).get(&logs).await;
    let mut told: Vec<&str> = logs
        .items()
        .iter()
        .map(|entry| entry["operation"].as_str().unwrap())
        .collect();
    told.sort_unstable();
    assert_eq!(told, ["create", "delete", "read"]);
}

/// Covers 16.20.
#[tokio::test]
async fn a_tenant_has_a_thousand_keys_at_most() {
    let stage = stage().await;
    let one_more = stage.key().await;
    let fill = "insert into client_key
            (tenant_id, key_id, public_key, sealed, created_by, expires_at)
        select 1, gen_random_uuid(), '', '', gen_random_uuid(), now() + interval '1 hour'
        from generate_series(1, 999)";
    assert_eq!(stage.sql(fill).await, 999);

    let refused = stage.manager.post("/keys", json!({})).await;
    let listed = stage.manager.get("/keys").await;
    stage.manager.delete(&path_of(&one_more)).await;
    let made = stage.manager.post("/keys", json!({})).await;

    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(listed.body.as_array().unwrap().len(), 1_000);
    assert_eq!(made.status, StatusCode::CREATED);
}
