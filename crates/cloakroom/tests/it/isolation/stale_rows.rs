//! Older copies of rows, which SQL restores, are rejected by nodes that know a later write.

use std::collections::BTreeSet;

use cloakroom::access::Transform;
use cloakroom::doctor::{self, Severity};
use cloakroom::tokens::{Difference, HistoryFinding, Scope, verify_histories};
use cloakroom_testkit::{Client, LogCapture, TestResponse, TestVault, everything};
use http::{Method, StatusCode};
use serde_json::json;
use tokio_postgres::Client as Database;

use super::intent_client;

const TABLES: [&str; 3] = ["token", "term", "claim"];

async fn save_rows(database: &Database) {
    for table in TABLES {
        let sql = format!("create temp table saved_{table} as select * from {table}");
        database.batch_execute(&sql).await.unwrap();
    }
}

async fn restore_rows(database: &Database) {
    for table in TABLES {
        let sql = format!("delete from {table}; insert into {table} select * from saved_{table}");
        database.batch_execute(&sql).await.unwrap();
    }
}

/// Sends a request through every operation that discloses or changes the data of the token.
async fn request_token(client: &Client, id: &str) -> Vec<(&'static str, TestResponse)> {
    let path = format!("/tokens/{id}");
    let by_metadata = json!({"query": "metadata.k:v"});
    vec![
        ("get", client.get(&path).await),
        ("list", client.get("/v2/tokens").await),
        ("old list", client.get("/tokens").await),
        (
            "search",
            client.post("/v2/tokens/search", by_metadata).await,
        ),
        (
            "detokenize",
            client
                .post("/detokenize", json!(format!("{{{{ {id} }}}}")))
                .await,
        ),
        (
            "update",
            client.patch(&path, json!({"metadata": {"k": "v"}})).await,
        ),
        (
            "duplicate",
            client
                .post(
                    "/tokens",
                    json!({"type": "token", "data": "old", "deduplicate_token": true}),
                )
                .await,
        ),
    ]
}

fn assert_rejected(responses: Vec<(&'static str, TestResponse)>, lines: &LogCapture) {
    for (operation, response) in &responses {
        assert_eq!(
            response.body["code"], "integrity_error",
            "{operation}: {}",
            response.body
        );
        assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
    assert_eq!(
        lines.count("stale_row"),
        responses.len(),
        "{}",
        lines.text()
    );
}

fn note() -> serde_json::Value {
    json!({"type": "token", "data": "old", "metadata": {"k": "v"}, "deduplicate_token": true})
}

#[tokio::test]
async fn a_node_rejects_an_older_row_of_a_token_that_it_updated() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let id = client.post("/tokens", note()).await.id();
    save_rows(&database).await;
    let updated = client
        .patch(&format!("/tokens/{id}"), json!({"data": "new"}))
        .await;
    assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);

    restore_rows(&database).await;

    let lines = LogCapture::start();
    let responses = request_token(&client, &id).await;
    assert_rejected(responses, &lines);
}

#[tokio::test]
async fn a_node_rejects_the_row_of_a_token_that_it_deleted() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let id = client.post("/tokens", note()).await.id();
    save_rows(&database).await;
    let deleted = client.delete(&format!("/tokens/{id}")).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);

    restore_rows(&database).await;

    let lines = LogCapture::start();
    let responses = request_token(&client, &id).await;
    assert_rejected(responses, &lines);
}

/// What a node does not know it cannot reject: the audit log shows it (`audit verify`).
#[tokio::test]
async fn another_node_rejects_an_older_row_once_it_has_revealed_the_newer_one() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let second = vault.second_node().await;
    let other = second.client(&tenant, everything(Transform::Reveal)).await;
    let database = vault.database.connect().await;
    let id = client.post("/tokens", note()).await.id();
    let path = format!("/tokens/{id}");
    save_rows(&database).await;
    client.patch(&path, json!({"data": "new"})).await;
    database
        .batch_execute("create temp table newer as select * from token")
        .await
        .unwrap();

    restore_rows(&database).await;
    let unknown = other.get(&path).await;
    database
        .batch_execute("delete from token; insert into token select * from newer")
        .await
        .unwrap();
    let newer = other.get(&path).await;
    restore_rows(&database).await;
    let known = other.get(&path).await;

    assert_eq!(unknown.body["data"], "old");
    assert_eq!(newer.body["data"], "new");
    assert_eq!(known.body["code"], "integrity_error", "{}", known.body);
}

/// A token that reuses the id of a deleted one is newer than the deletion.
#[tokio::test]
async fn an_id_that_is_reused_after_a_deletion_is_not_stale() {
    let vault = TestVault::start_with(cloakroom_testkit::TestDatabase::create().await, |config| {
        config.tokens.deleted_id_retention = std::time::Duration::ZERO;
    })
    .await;
    let client = vault.revealing_client().await;
    let new = |data: &str| json!({"id": "chosen", "type": "token", "data": data});
    assert_eq!(
        client.post("/tokens", new("one")).await.status,
        StatusCode::CREATED
    );
    assert_eq!(
        client.delete("/tokens/chosen").await.status,
        StatusCode::NO_CONTENT
    );
    let database = vault.database.connect().await;
    database
        .batch_execute("delete from reserved_token_id")
        .await
        .unwrap();

    let created = client.post("/tokens", new("two")).await;

    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    assert_eq!(client.get("/tokens/chosen").await.body["data"], "two");
}

/// Readers race with writers: a row that was read before a concurrent write is read again, not rejected.
#[tokio::test]
async fn concurrent_reads_and_updates_of_a_token_are_not_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = client.post("/tokens", note()).await.id();
    let path = format!("/tokens/{id}");
    let lines = LogCapture::start();

    let write = async {
        for number in 0..50 {
            let updated = client
                .patch(&path, json!({"data": number.to_string()}))
                .await;
            assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
        }
    };
    let read = async || {
        for _ in 0..100 {
            let read = client.get(&path).await;
            assert_eq!(read.status, StatusCode::OK, "{}", read.body);
            let listed = client.get("/v2/tokens").await;
            assert_eq!(listed.items().len(), 1, "{}", listed.body);
        }
    };
    tokio::join!(write, read(), read(), read());

    assert_eq!(lines.count("stale_row"), 0, "{}", lines.text());
}

async fn differences(vault: &TestVault) -> Vec<(String, Difference)> {
    let report = verify_histories(&vault.vault, Scope::All, |_| {})
        .await
        .unwrap();
    let sample = verify_histories(&vault.vault, Scope::Sample(1_000), |_| {})
        .await
        .unwrap();
    assert_eq!(report.tokens, sample.tokens);
    assert_eq!(report.finding_count, report.findings.len() as u64);
    let of = |findings: Vec<HistoryFinding>| -> BTreeSet<(String, String)> {
        let parts = |found: HistoryFinding| (found.token_id, format!("{:?}", found.difference));
        findings.into_iter().map(parts).collect()
    };
    let found = report.findings.clone();
    // A sample of tokens does not contain those that do not exist.
    let mut existing = report.findings;
    existing.retain(|one| one.difference != Difference::Missing);
    assert_eq!(of(existing), of(sample.findings));
    found
        .into_iter()
        .map(|one| (one.token_id, one.difference))
        .collect()
}

#[tokio::test]
async fn tokens_that_only_the_api_changed_match_the_audit_log() {
    let vault = TestVault::start().await;
    let client = intent_client(&vault).await;
    let card =
        json!({"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2040});
    let id = client.post("/tokens", note()).await.id();
    client
        .patch(&format!("/tokens/{id}"), json!({"metadata": {"k": "w"}}))
        .await;
    // A duplicate, several tokens at once, an intent that is converted, a token with an id of its own, and a deletion.
    client.post("/tokens", note()).await;
    client
        .post("/tokenize", json!([note(), {"type": "card", "data": card}]))
        .await;
    let intent = client
        .post("/token-intents", json!({"type": "card", "data": card}))
        .await
        .id();
    client
        .post("/tokens", json!({"token_intent_id": intent}))
        .await;
    client
        .post(
            "/tokens",
            json!({"id": "own id", "type": "token", "data": "x"}),
        )
        .await;
    let deleted = client
        .post("/tokens", json!({"type": "token", "data": "y"}))
        .await
        .id();
    client.delete(&format!("/tokens/{deleted}")).await;
    let idempotent = client
        .request(Method::POST, "/tokens")
        .header("bt-idempotency-key", "k");
    client
        .send(idempotent.json(&json!({"type": "token", "data": "z"})))
        .await;

    assert_eq!(differences(&vault).await, []);
    let report = verify_histories(&vault.vault, Scope::All, |_| {})
        .await
        .unwrap();
    assert_eq!(report.tokens, 5);
}

#[tokio::test]
async fn restored_rows_do_not_match_the_audit_log() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let new = |id: &str| json!({"id": id, "type": "token", "data": id});
    for id in ["updated", "deleted", "unchanged", "lost"] {
        assert_eq!(
            client.post("/tokens", new(id)).await.status,
            StatusCode::CREATED
        );
    }
    save_rows(&database).await;
    client
        .patch("/tokens/updated", json!({"metadata": {"k": "v"}}))
        .await;
    client.delete("/tokens/deleted").await;
    assert_eq!(differences(&vault).await, []);

    restore_rows(&database).await;
    let removed =
        "delete from log where entity_id = 'unchanged'; delete from token where alias = 'lost'";
    database.batch_execute(removed).await.unwrap();

    let mut found = differences(&vault).await;
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("deleted".to_owned(), Difference::Undeleted),
        ("lost".to_owned(), Difference::Missing),
        ("unchanged".to_owned(), Difference::Unrecorded),
        ("updated".to_owned(), Difference::Older),
    ];
    assert_eq!(found, expected);
    let findings = doctor::diagnose(&vault.configuration(), None).await;
    let bad = findings
        .iter()
        .filter(|one| one.area == "tokens" && one.severity == Severity::Bad);
    assert_eq!(bad.count(), 3, "{findings:?}");
}
