//! Deleting tokens, and reuse of their ids.

use std::collections::BTreeSet;
use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{TestDatabase, TestVault, grants, rule};
use http::StatusCode;
use serde_json::json;

use super::{card, create, search_ids, send_patch, setup};

/// Covers 6.1, 6.2.
#[tokio::test]
async fn deleted_tokens_are_not_found() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let created = client.post("/tokens", card()).await;
    let path = format!("/tokens/{}", created.id());

    let deleted = client.delete(&path).await;
    let found = client.get(&path).await;
    let again = client.delete(&path).await;

    assert_eq!(
        (deleted.status, deleted.bytes.len()),
        (StatusCode::NO_CONTENT, 0)
    );
    assert_eq!(found.status, StatusCode::NOT_FOUND);
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

/// Covers 1.6, 6.3.
#[tokio::test]
async fn deleting_requires_permission_in_the_container() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault
        .client(&tenant, grants(&[Permission::TokenCreate]))
        .await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/general/",
        Transform::Mask,
        &[Permission::TokenDelete],
    )];
    let client = vault.client(&tenant, granted).await;
    let created = writer.post("/tokens", card()).await;

    let response = client.delete(&format!("/tokens/{}", created.id())).await;

    assert_eq!(response.status, StatusCode::FORBIDDEN);
}

/// Covers 6.1, 6.2.
#[tokio::test]
async fn deleting_returns_no_content_and_then_not_found() {
    let (_vault, _, client) = setup().await;
    let uuid = create(&client, json!({"type": "token", "data": 1})).await;
    create(
        &client,
        json!({"id": "order 17", "type": "token", "data": 1}),
    )
    .await;

    for path in [uuid.as_str(), "/tokens/order%2017"] {
        let deleted = client.delete(path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert!(deleted.bytes.is_empty());
        let unknown = client.delete("/tokens/nowhere").await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        let others = [
            client.delete(path).await,
            client.get(path).await,
            client.patch(path, json!({})).await,
        ];
        for gone in others {
            assert_eq!(gone.status, StatusCode::NOT_FOUND);
            assert_eq!(gone.bytes, unknown.bytes);
        }
    }
}

/// Covers 6.3.
#[tokio::test]
async fn deletes_without_permission_are_forbidden() {
    use Permission::{TokenDelete, TokenRead, TokenUpdate};
    let (vault, tenant, writer) = setup().await;
    let mut elsewhere = grants(&[TokenRead, TokenUpdate]);
    elsewhere.rules = vec![rule(1, "/elsewhere/", Transform::Reveal, &[TokenDelete])];
    let elsewhere = vault.client(&tenant, elsewhere).await;
    let nowhere = vault
        .client(&tenant, grants(&[TokenRead, TokenUpdate]))
        .await;
    let path = create(&writer, json!({"type": "token", "data": "x"})).await;

    let here = elsewhere.delete(&path).await;
    let unknown = elsewhere.delete("/tokens/nowhere").await;
    let probing = nowhere.delete("/tokens/nowhere").await;

    assert_eq!(here.status, StatusCode::FORBIDDEN);
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(probing.status, StatusCode::FORBIDDEN);
    assert_eq!(writer.get(&path).await.body["data"], "x");
    // Once the token is in a container where the caller has the permission, it can be deleted.
    send_patch(&writer, &path, json!({"containers": ["/elsewhere/sub/"]})).await;
    assert_eq!(elsewhere.delete(&path).await.status, StatusCode::NO_CONTENT);
}

/// Covers 6.4.
#[tokio::test]
async fn deleting_removes_the_token_from_all_tables() {
    let (vault, _, client) = setup().await;
    let new = json!({
        "id": "order 17",
        "type": "card",
        "data": {"number": "4242424242424242", "cvc": "123"},
        "metadata": {"customer": "a customer of ours"},
        "search_indexes": ["{{ data.number | last4 }}"],
        "deduplicate_token": true,
    });
    let created = client.post("/tokens", new.clone()).await;
    send_patch(
        &client,
        "/tokens/order%2017",
        json!({"metadata": {"more": "v"}}),
    )
    .await;
    let database = vault.database.connect().await;
    let row = "select token_id::text, encode(sealed, 'hex'), encode(fingerprint, 'hex') from token";
    let row = database.query_one(row, &[]).await.unwrap();
    let mut traces: Vec<String> = (0..3).map(|column| row.get(column)).collect();
    traces.extend(["order 17", "a customer of ours"].map(str::to_owned));
    for (term, _) in terms_of_key(&database, &traces[0]).await {
        traces.push(term);
    }

    let before = rows_with(&database, &traces).await;
    let deleted = client.delete("/tokens/order%2017").await;

    let tables: BTreeSet<&str> = before.iter().map(String::as_str).collect();
    let expected = [
        "claim",
        "log",
        "reserved_token_id",
        "security_code",
        "term",
        "token",
    ];
    assert_eq!(tables, BTreeSet::from(expected));
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    // The audit log still names it, and its id stays reserved.
    let left: BTreeSet<String> = rows_with(&database, &traces).await.into_iter().collect();
    assert_eq!(
        left,
        BTreeSet::from(["log", "reserved_token_id"].map(str::to_owned))
    );
    // No search finds it, and it is not a duplicate of a new token.
    assert!(search_ids(&client, "data:4242").await.is_empty());
    let detokenized = client.post("/detokenize", json!("{{ order 17 }}")).await;
    assert_eq!(detokenized.status, StatusCode::BAD_REQUEST);
    let mut new = new;
    new["id"] = json!("order 18");
    let again = client.post("/tokens", new).await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(again.id(), "order 18");
    assert_eq!(again.body["_extras"], json!({"deduplicated": false}));
    assert_eq!(
        again.body["metadata"],
        json!({"customer": "a customer of ours"})
    );
    assert_eq!(again.body["fingerprint"], created.body["fingerprint"]);
    assert_eq!(again.body.get("modified_at"), None);
}

async fn terms_of_key(database: &tokio_postgres::Client, key: &str) -> Vec<(String, String)> {
    let select = "select encode(term, 'hex'), path from term where token_id::text = $1";
    let rows = database.query(select, &[&key]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The tables with rows that contain any of these texts.
async fn rows_with(database: &tokio_postgres::Client, texts: &[String]) -> Vec<String> {
    let tables = "select table_name::text from information_schema.tables
        where table_schema = 'public' and table_name !~ '^log_[0-9]+$' order by 1";
    let mut found = Vec::new();
    for row in database.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let rows = format!("select row_to_json(it)::text from {table} it");
        for row in database.query(&rows, &[]).await.unwrap() {
            let text: String = row.get(0);
            if texts.iter().any(|trace| text.contains(trace)) {
                found.push(table.clone());
            }
        }
    }
    found
}

/// Covers 6.5, 9.14.
#[tokio::test]
async fn ids_of_deleted_tokens_cannot_be_reused() {
    let (vault, tenant, client) = setup().await;
    let public = grants(&[Permission::TokenCreate]);
    let public = vault.holder(&tenant, ApplicationKind::Public, public).await;
    let public = vault.client_with(Some(&public.key));
    let random = create(&client, json!({"type": "token", "data": "first"})).await;
    let random = random.trim_start_matches("/tokens/").to_owned();
    let chosen = cloakroom::ids::new_uuid().to_string();
    for id in [chosen.as_str(), "order-17"] {
        create(&client, json!({"id": id, "type": "token", "data": "first"})).await;
    }
    for id in [&random, &chosen, "order-17"] {
        let path = format!("/tokens/{id}");
        let new = json!({"id": id, "type": "token", "data": "second"});
        client.delete(&path).await;
        for client in [&client, &public] {
            let rejected = client.post("/tokens", new.clone()).await;
            assert_eq!(rejected.status, StatusCode::CONFLICT, "{id}");
            let detail = "A token with this id exists or was deleted. Choose another id.";
            assert_eq!(rejected.body["detail"], detail);
            let rejected = client.post("/tokenize", json!({"a": new, "b": "c"})).await;
            assert_eq!(rejected.status, StatusCode::CONFLICT, "{id}");
        }
        assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    }
    // Ids are scoped to the tenant.
    let other = vault.revealing_client().await;
    create(
        &other,
        json!({"id": "order-17", "type": "token", "data": "theirs"}),
    )
    .await;
}

/// Covers 6.5.
#[tokio::test]
async fn ids_of_deleted_tokens_are_free_after_the_retention_period() {
    let (vault, _, client) = setup().await;
    let new = json!({"id": "order-17", "type": "token", "data": "first"});
    create(&client, new.clone()).await;
    client.delete("/tokens/order-17").await;
    let database = vault.database.connect().await;
    let sweep = async || {
        cloakroom::jobs::sweep_once(&vault.vault, cloakroom::ids::new_uuid())
            .await
            .unwrap();
        database.execute("delete from lease", &[]).await.unwrap();
    };
    let reserved = async |age: &str| {
        let sql = format!("update reserved_token_id set deleted_at = now() - interval '{age}'");
        assert_eq!(database.execute(&sql, &[]).await.unwrap(), 1);
        sweep().await;
        client.post("/tokens", new.clone()).await.status
    };

    assert_eq!(reserved("364 days").await, StatusCode::CONFLICT);
    assert_eq!(reserved("366 days").await, StatusCode::CREATED);
    // The reservation of a live token is not swept.
    sweep().await;
    let sql = "select count(*) from reserved_token_id where deleted_at is null";
    let live: i64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(live, 1);
}

#[tokio::test]
async fn ids_of_deleted_tokens_are_free_at_once_without_retention() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.tokens.deleted_id_retention = Duration::ZERO;
    })
    .await;
    let client = vault.revealing_client().await;
    for id in [&cloakroom::ids::new_uuid().to_string(), "order-17"] {
        for round in 0..3 {
            let new = json!({"id": id, "type": "token", "data": round});
            create(&client, new.clone()).await;
            let taken = client.post("/tokens", new).await;
            assert_eq!(taken.status, StatusCode::CONFLICT);
            client.delete(&format!("/tokens/{id}")).await;
        }
    }
}

/// A create that waits for the delete of the same id sees the reservation, not the freed key.
#[tokio::test]
async fn creates_concurrent_with_a_delete_do_not_reuse_its_id() {
    let (_vault, _, client) = setup().await;
    for round in 0..5 {
        let id = format!("contended {round}");
        let path = format!("/tokens/{id}");
        create(&client, json!({"id": id, "type": "token", "data": "first"})).await;
        let new = json!({"id": id, "type": "token", "data": "second"});
        let creates = async || {
            let mut created = 0;
            for _ in 0..5 {
                let status = client.post("/tokens", new.clone()).await.status;
                created += usize::from(status == StatusCode::CREATED);
            }
            created
        };
        let (deleted, one, two, three) =
            tokio::join!(client.delete(&path), creates(), creates(), creates());
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert_eq!(one + two + three, 0, "{id}");
    }
}
