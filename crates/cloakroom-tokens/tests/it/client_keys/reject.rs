//! Rejection of modified, unsupported and outdated JWEs, and of modified keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom::access::Transform;
use cloakroom_testkit::{LogCapture, encrypt, encrypt_with, everything};
use http::StatusCode;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{create_encrypted, fixture};

/// Modifies a JWE header.
type ChangeHeader = fn(&mut Value);

/// Covers 16.14, 16.15.
#[tokio::test]
async fn a_modified_jwe_is_rejected() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let lines = LogCapture::start();
    let encrypted = encrypt(&key, r#"{"secret":"unlogged plaintext"}"#);
    let created = create_encrypted(&fixture.client, &encrypted).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let before = fixture.count_tokens().await;

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
    // An equivalent header with other whitespace does not authenticate.
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

    let mut responses: Vec<Vec<u8>> = Vec::new();
    for text in &altered {
        let response = create_encrypted(&fixture.client, text).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{text}");
        assert_eq!(response.refused(), ["encrypted"], "{text}");
        responses.push(response.bytes);
    }
    responses.dedup();
    assert_eq!(responses.len(), 1, "the responses reveal the cause");
    assert_eq!(fixture.count_tokens().await, before);
    let log = lines.text();
    assert!(!log.contains("unlogged plaintext") && !log.contains(parts[3]));
}

/// Covers 16.14, 16.16.
#[tokio::test]
async fn only_the_supported_jwe_algorithms_are_accepted() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    // Each value is encrypted correctly under its own header.
    let changes: [(&str, ChangeHeader); 10] = [
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
        let response = create_encrypted(&fixture.client, &encrypt_with(&key, "1", change)).await;
        assert_eq!(response.refused(), ["encrypted"], "{name}");
    }
    let harmless = encrypt_with(&key, "1", |header| header["typ"] = json!("JWE"));
    let harmless = create_encrypted(&fixture.client, &harmless).await;
    assert_eq!(harmless.status, StatusCode::CREATED);
    // The limits of request bodies apply to decrypted data.
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    for plaintext in [&*deep, r#"{"a":1,"a":2}"#, "1 2", "{", "\u{1}", "nonsense"] {
        let response = create_encrypted(&fixture.client, &encrypt(&key, plaintext)).await;
        assert_eq!(response.refused(), ["encrypted"], "{plaintext}");
    }
}

/// Covers 16.19.
#[tokio::test]
async fn keys_modified_by_sql_decrypt_nothing() {
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
        "update client_key set application_id = gen_random_uuid() where key_id = '{key}'",
        "update client_key set container = '/' where key_id = '{key}'",
    ];
    let fixture = fixture().await;
    let other_tenant = fixture.vault.tenant().await;
    let other_tenant = fixture
        .vault
        .client(&other_tenant, everything(Transform::Reveal))
        .await;
    for attack in attacks {
        let (key, other) = (fixture.create_key().await, fixture.create_key().await);
        // The attacker encrypts to the key that it substituted for the original.
        let mut substituted = other.clone();
        substituted["key_id"] = key["key_id"].clone();
        let texts = [encrypt(&key, "1"), encrypt(&substituted, "1")];
        assert_eq!(
            create_encrypted(&fixture.client, &texts[0]).await.status,
            StatusCode::CREATED
        );
        let before = fixture.count_tokens().await;
        let lines = LogCapture::start();

        let sql = attack
            .replace("{key}", key["id"].as_str().unwrap())
            .replace("{other}", other["id"].as_str().unwrap());
        assert!(fixture.execute(&sql).await >= 1, "{attack}");

        let moved = attack.contains("tenant_id");
        let client = if moved {
            &other_tenant
        } else {
            &fixture.client
        };
        for text in &texts {
            let response = create_encrypted(client, text).await;
            assert_eq!(
                response.status,
                StatusCode::INTERNAL_SERVER_ERROR,
                "{attack}"
            );
            assert_eq!(response.body["code"], "integrity_error", "{attack}");
        }
        assert_eq!(
            lines.count("an encrypted value cannot be decrypted"),
            2,
            "{attack}"
        );
        assert_eq!(fixture.count_tokens().await, before, "{attack}");
        fixture.execute("delete from client_key").await;
    }
}

/// Covers 16.25.
#[tokio::test]
async fn a_jwe_with_an_issue_time_is_rejected_outside_its_window() {
    let fixture = fixture().await;
    let key = fixture.create_key().await;
    let now = fixture.vault.vault.clock.now().await.unwrap();
    let issued = |at: Timestamp| {
        encrypt_with(&key, "1", move |header| {
            header["iat"] = json!(at.as_second());
        })
    };
    let fresh = issued(now);
    for (text, expected) in [
        (&fresh, StatusCode::CREATED),
        (&issued(now - 4.minutes()), StatusCode::CREATED),
        (&issued(now - 6.minutes()), StatusCode::BAD_REQUEST),
        (&issued(now + 2.minutes()), StatusCode::BAD_REQUEST),
        (&encrypt(&key, "1"), StatusCode::CREATED),
    ] {
        assert_eq!(
            create_encrypted(&fixture.client, text).await.status,
            expected
        );
    }
    let strict = fixture
        .vault
        .node_with(|config| config.client_encryption.require_iat = true)
        .await;
    let client = fixture.client.at(&strict.base_url);
    let without = create_encrypted(&client, &encrypt(&key, "1")).await;
    assert_eq!(without.refused(), ["encrypted"]);
    assert_eq!(
        create_encrypted(&client, &fresh).await.status,
        StatusCode::CREATED
    );
}
