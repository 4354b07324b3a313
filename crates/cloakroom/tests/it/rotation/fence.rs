//! Nodes with old keys: the database accepts nothing under a version that was closed, and no request fails.

use cloakroom::rotation::Phase;
use http::Method;
use serde_json::json;

use super::{Fixture, SEALED};

#[tokio::test]
async fn a_node_with_old_keys_encrypts_again_and_no_request_fails() {
    let fixture = Fixture::create(2).await;
    let other = fixture.vault.second_node().await;
    let (client, manager) = (
        fixture.client.at(&other.base_url),
        fixture.manager.at(&other.base_url),
    );
    for closed_by in ["tokens", "everything else"] {
        // The other node caches keys, and never learns of the rotation: it has no heartbeat.
        fixture.assert_readable(&client).await;
        fixture.start().await;
        fixture.advance_to(Phase::Proved).await;
        let version = match closed_by {
            "tokens" => {
                let path = format!("/tokens/{}", fixture.tokens[0]);
                let metadata = json!({"metadata": {"changed": "yes"}});
                let patched = client.patch(&path, metadata).await;
                assert_eq!(patched.status, 200, "{}", patched.body);
                let request = client
                    .request(Method::POST, "/tokens")
                    .header("bt-idempotency-key", "once")
                    .header("content-type", "application/json");
                let new = json!({"type": "token", "data": "once"}).to_string();
                let created = client.send(request.body(new)).await;
                assert_eq!(created.status, 201, "{}", created.body);
                2
            }
            _ => {
                fixture.write_everything(&client, &manager).await;
                3
            }
        };
        fixture.assert_all_under(version).await;
        let vault = &fixture.vault.vault;
        let purpose = cloakroom_crypto::KeyPurpose::Data;
        let retired = cloakroom::rotation::retire(vault, fixture.tenant.id, purpose).await;
        retired.unwrap();
    }
}

#[tokio::test]
async fn values_under_a_closed_version_are_rejected_by_the_database() {
    let fixture = Fixture::create(2).await;
    let old = fixture
        .vault
        .vault
        .keys
        .of(fixture.tenant.id)
        .await
        .unwrap();
    fixture.rotate().await;
    let record = cloakroom::keys::Record {
        kind: "token_intent",
        id: b"id",
        column: "data",
        row_version: 1,
        policy: cloakroom_crypto::PolicyDigest::new::<&str>("token_intent", &[], None),
    };
    let sealed = old.seal(&record, b"secret").unwrap();
    let id = cloakroom::ids::new_uuid();
    let number = fixture.tenant.id.number;
    let insert = "insert into token_intent (tenant_id, intent_id, kind, sealed, created_by, created_at, expires_at)
        values ($1, $2, 1, ";
    let fenced = cloakroom_core::fenced!("$1", "$3");
    let sql = format!("{insert}{fenced}, $2, now(), now())");

    let error = fixture
        .database
        .execute(&sql, &[&number, &id, &sealed])
        .await
        .unwrap_err();

    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "23502");
    assert_eq!(error.column(), Some("sealed"));
}

/// Every statement that stores a value in a sealed column has the fence.
#[tokio::test]
async fn no_statement_stores_encrypted_values_without_the_fence() {
    let mut tables: Vec<&str> = SEALED.iter().map(|(table, _)| *table).collect();
    tables.extend(["threeds_session", "reply"]);
    let mut checked = 0;
    for statement in cloakroom::statements() {
        // Security codes have keys of their own.
        let text = statement.text.replace("code_sealed", "code");
        let stores = tables.iter().any(|table| {
            let inserts = text.contains(&format!("insert into {table} "))
                || text.contains(&format!("insert into {table}\n"));
            let updates = text.contains(&format!("update {table}\n"));
            let sets = text.contains("sealed = ")
                || text.contains("secret = ")
                || text.contains("sealed, ");
            inserts || updates && sets
        });
        if stores {
            checked += 1;
            assert!(
                text.contains("from tenant_key fence"),
                "{}: {text}",
                statement.name
            );
        }
    }
    assert!(checked > 20, "{checked}");
}
